package modkit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// finaliseTurn is the business transaction: what the turn used and its message, or neither.
func finaliseTurn(ctx context.Context, tx pgx.Tx, tenant, turn, request uuid.UUID) ([]modkit.Enqueued, error) {
	if _, err := tx.Exec(ctx, `UPDATE turns SET tokens = 17 WHERE id = $1`, turn); err != nil {
		return nil, err
	}
	return modkit.Enqueue(ctx, tx, modkit.Message{
		Namespace: "mini-chat",
		Topic:     "usage",
		TenantID:  tenant,
		DedupeKey: fmt.Sprintf("%s/%s/%s", tenant, turn, request),
		Payload:   []byte(`{"tokens": 17}`),
	})
}

// newDispatcher hands the messages of one topic to a function.
func newDispatcher(pool *pgxpool.Pool) (*outbox.Relay, error) {
	module, err := modkit.NewModule(pool, modkit.Config{Namespace: "mini-chat", MaxAttempts: 5})
	if err != nil {
		return nil, err
	}
	return modkit.NewDispatcher(module, modkit.DispatcherConfig{
		Handlers: map[string]modkit.Handler{
			"usage": func(_ context.Context, message modkit.ClaimedMessage) error {
				fmt.Println(message.Topic, string(message.Payload), "attempt", message.Attempts)
				return nil
			},
		},
	})
}

// A message is enqueued in the caller's transaction. The second time it is there already.
func ExampleEnqueue() {
	ctx, pool, done := exampleTable()
	defer done()

	tenant, turn, request := uuid.New(), uuid.New(), uuid.New()
	for range 2 {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			enqueued, err := finaliseTurn(ctx, tx, tenant, turn, request)
			if err == nil {
				fmt.Println("already enqueued:", enqueued[0].AlreadyEnqueued)
			}
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// already enqueued: false
	// already enqueued: true
}

// A module names its namespace, and sees nothing else. An *sql.DB does as well as a pool.
func ExampleNewModule() {
	_, pool, done := exampleTable()
	defer done()

	_, err := modkit.NewModule(pool, modkit.Config{})
	fmt.Println(err)
	_, err = modkit.NewModule(pool, modkit.Config{Namespace: "mini-chat"})
	fmt.Println(err)
	db := stdlib.OpenDBFromPool(pool) // or sql.Open("pgx", …)
	defer func() { _ = db.Close() }()
	_, err = modkit.NewModule(db, modkit.Config{Namespace: "mini-chat"})
	fmt.Println(err)
	// Output:
	// outbox: Config.Namespace is missing: give the module's own, or modkit.AllNamespaces
	// <nil>
	// <nil>
}

// A module runs a dispatcher for its own namespace, with a function for each topic.
func ExampleNewDispatcher() {
	ctx, pool, done := exampleTable("usage")
	defer done()

	dispatcher, err := newDispatcher(pool)
	if err != nil {
		fmt.Println(err)
		return
	}
	// A service runs it until shutdown, with dispatcher.Run(ctx); Drain ends when nothing is left.
	fmt.Println(dispatcher.Drain(ctx))
	// Output:
	// usage {"topic": "usage"} attempt 1
	// <nil>
}

// A module enqueues in its own namespace, which its messages need not repeat.
func ExampleModule_Enqueue() {
	ctx, pool, module, done := exampleModule()
	defer done()

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		enqueued, err := module.Enqueue(ctx, tx,
			modkit.Message{Topic: "usage", Payload: []byte(`{"tokens": 17}`)},
			modkit.Message{Topic: "audit", Payload: []byte(`{"turn": "ended"}`)},
		)
		fmt.Println(len(enqueued), "enqueued")
		return err
	})
	fmt.Println(err)
	// Output:
	// 2 enqueued
	// <nil>
}

// A module that has a loop of its own claims, works, and acks.
func ExampleModule_ClaimBatch() {
	ctx, _, module, done := exampleModule("usage", "audit")
	defer done()

	messages, err := module.ClaimBatch(ctx, modkit.ClaimCfg{BatchSize: 10, LeaseDuration: time.Minute, MaxAttempts: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, message := range messages {
		fmt.Println(message.Topic, message.Attempts, module.Ack(ctx, message))
	}
	// Output:
	// usage 1 <nil>
	// audit 1 <nil>
}

// An ack needs the lease: after it the row is no longer this claim's.
func ExampleModule_Ack() {
	ctx, _, module, done := exampleModule("usage")
	defer done()

	for _, message := range claimed(ctx, module) {
		fmt.Println(module.Ack(ctx, message))
		fmt.Println("lease lost:", errors.Is(module.Ack(ctx, message), outbox.ErrLeaseLost))
	}
	// Output:
	// <nil>
	// lease lost: true
}

// A nack has the message tried again, later, unless the error says that no attempt can help.
func ExampleModule_Nack() {
	ctx, _, module, done := exampleModule("usage", "audit")
	defer done()

	messages := claimed(ctx, module)
	fmt.Println(module.Nack(ctx, messages[0], errors.New("downstream is busy")))
	fmt.Println(module.Nack(ctx, messages[1], outbox.Terminal(errors.New("unknown version"))))
	stats, err := module.Stats(ctx)
	fmt.Println(stats.Retrying, "retrying,", stats.Dead, "dead,", err)
	// Output:
	// <nil>
	// <nil>
	// 1 retrying, 1 dead, <nil>
}

// A worker that takes longer than its lease keeps the message by renewing it.
func ExampleModule_Renew() {
	ctx, _, module, done := exampleModule("usage")
	defer done()

	for _, message := range claimed(ctx, module) {
		fmt.Println(module.Renew(ctx, message))
		fmt.Println(module.Ack(ctx, message))
	}
	// Output:
	// <nil>
	// <nil>
}

// A worker that ends before it has tried gives the message back: the attempt is not counted.
func ExampleModule_Release() {
	ctx, _, module, done := exampleModule("usage")
	defer done()

	for _, message := range claimed(ctx, module) {
		fmt.Println(module.Release(ctx, message))
	}
	fmt.Println("attempt", claimed(ctx, module)[0].Attempts)
	// Output:
	// <nil>
	// attempt 1
}

// Stats are for monitoring: what is dead was committed and not delivered.
func ExampleModule_Stats() {
	ctx, _, module, done := exampleModule("usage", "audit")
	defer done()

	stats, err := module.Stats(ctx)
	fmt.Println(stats.Due, "due,", stats.Held, "held,", stats.Dead, "dead,", err)
	// Output:
	// 2 due, 0 held, 0 dead, <nil>
}

// Somebody has mended the cause, and has a dead message tried again.
func ExampleModule_Retry() {
	ctx, _, module, done := exampleModule("usage")
	defer done()

	message := claimed(ctx, module)[0]
	fmt.Println(module.Nack(ctx, message, outbox.Terminal(errors.New("no account"))))
	retried, err := module.Retry(ctx, message.ID)
	fmt.Println(len(retried), err)
	fmt.Println("attempt", claimed(ctx, module)[0].Attempts)
	// Output:
	// <nil>
	// 1 <nil>
	// attempt 1
}

// A sweep is for a module that claims nothing for a while.
func ExampleModule_Sweep() {
	ctx, _, module, done := exampleModule("usage")
	defer done()

	fmt.Println(module.Sweep(ctx))
	// Output:
	// 0 <nil>
}

// What was delivered is kept for a week.
func ExampleModule_Purge() {
	ctx, _, module, done := exampleModule("usage")
	defer done()

	fmt.Println(module.Purge(ctx, outbox.Purge{Retention: 7 * 24 * time.Hour}))
	// Output:
	// 0 <nil>
}
