package ops_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/outboxpgx"
)

// A dead event is found, read and brought back.
func Example() {
	ctx := context.Background()
	layout := modkit.Layout()
	tables, err := modkit.Migrations(layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := audit.Migrations()
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(``, tables, log)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	emitter, err := outboxpgx.New(layout, outbox.EmitConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := emitter.Emit(ctx, tx, outbox.Event{Namespace: "shop", Topic: "orders", Payload: []byte(`{"order": 42}`)})
		return err
	})
	if err == nil { // as if a relay had given up on it
		_, err = pool.Exec(ctx, `UPDATE modkit_outbox_events SET status = 'dead', last_error = 'order 42 is unknown'`)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	orders, err := ops.Table(pool, layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	groups, err := orders.DeadGroups(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range groups.Groups {
		fmt.Printf("%d of %s: %s\n", group.Count, group.Topic, group.Error)
		result, err := orders.Retry(ctx, ops.Filter{Topic: group.Topic, Error: group.Error}, ops.Change{Actor: "alice"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("retried %d\n", result.Events)
	}
	entries, err := orders.Audit(ctx, ops.Page{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s did %s, %d event\n", entries.Entries[0].Actor, entries.Entries[0].Operation, entries.Entries[0].Events)
	// Output:
	// 1 of orders: order # is unknown
	// retried 1
	// alice did retry, 1 event
}
