package outboxtest_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/docpage"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/pgstream"
)

// TestDocumentation keeps the code of docs/testing.md what is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../docs/testing.md", "go", "main_test.go", "page_test.go")
}

func TestPay(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t) // a database that only this test has
	if err := pgstream.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()

	if err := pay(t.Context(), tx, 42, 1999); err != nil {
		t.Fatal(err)
	}

	outboxtest.RequireEmitted(t, tx, pgstream.Stream{},
		outbox.Event{Type: "order.paid", Key: "order/42", Payload: []byte(`{"amount": 1999}`)})
	outboxtest.RequireNotEmitted(t, tx, pgstream.Stream{}, outbox.Event{Type: "order.cancelled"})
}
