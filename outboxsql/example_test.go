package outboxsql_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxsql"
)

// The PackFinderz table holds an envelope: the event's id is chosen first, so that the
// row and the envelope share it.
func Example() {
	files, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(`SELECT`, files)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()

	ctx := context.Background()
	emitter, err := outboxsql.New(packfinderz.Layout(), outbox.EmitConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = emitter.InTx(ctx, db, func(tx *sql.Tx) error {
		id := uuid.Must(uuid.NewV7())
		payload, err := json.Marshal(packfinderz.Envelope{
			Version: 1, EventID: id.String(), OccurredAt: time.Now().UTC(),
			Actor: &packfinderz.ActorRef{Type: "user", ID: "7"},
			Data:  json.RawMessage(`{"licenseId": "3", "status": "verified"}`),
		})
		if err != nil {
			return err
		}
		_, err = emitter.Emit(ctx, tx, outbox.Event{
			ID: id, Type: "license_status_changed", AggregateType: "license", AggregateID: uuid.NewString(), Payload: payload,
		})
		return err
	})
	fmt.Println(err)

	var same bool
	err = db.QueryRowContext(ctx, `SELECT payload_json->>'eventId' = id::text FROM outbox_events`).Scan(&same)
	fmt.Println(same, err)
	// Output:
	// <nil>
	// true <nil>
}
