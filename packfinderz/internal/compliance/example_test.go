package compliance_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/compliance"
	"github.com/packfinderz/outbox/packfinderz/migrations"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
)

// An event that Pub/Sub delivers twice has one notification. In the worker the consumer of gcppubsub does what is done here by hand:
// it acknowledges what is answered with nil, and has the rest delivered again.
func ExampleHandler() {
	example := &testserver.Example{}
	defer example.Done()
	pool := testdb.Pool(example)
	testdb.Migrate(example, pool, migrations.Sample())
	log := slog.New(slog.DiscardHandler)
	events, err := idempotency.NewManager(redistest.New(example).Client(), idempotency.Config{Logger: log})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := compliance.New(pool, events, log)
	if err != nil {
		fmt.Println(err)
		return
	}
	delivered := []outbox.Message{backendtest.Pending(example)}
	for range 2 {
		fmt.Println(handler.Publish(context.Background(), delivered))
	}
	var notifications int
	err = pool.QueryRow(context.Background(), `SELECT count(*) FROM notifications WHERE audience = 'admin'`).Scan(&notifications)
	fmt.Println(notifications, err)
	// Output:
	// [<nil>]
	// [<nil>]
	// 1 <nil>
}
