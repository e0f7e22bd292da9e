package outboxgorm_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestRequireEmitted looks for an event in the GORM transaction that emitted it.
func TestRequireEmitted(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]gorm.Config{"plain": {}, "prepared statements": {PrepareStmt: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			if err := pgstream.Migrate(t.Context(), pgtest.Connect(t, url)); err != nil {
				t.Fatal(err)
			}
			emitter, err := outboxgorm.New(pgstream.Stream{}, outbox.EmitConfig{})
			if err != nil {
				t.Fatal(err)
			}
			tx := open(t, url, config).Begin()
			defer tx.Rollback()
			outboxtest.RequireNotEmitted(t, outboxgorm.Tx(tx), pgstream.Stream{})
			event := outbox.Event{Topic: "orders", Type: "order.paid", Payload: []byte(`{"amount": 1999}`)}
			if _, err := emitter.Emit(t.Context(), tx, event); err != nil {
				t.Fatal(err)
			}
			outboxtest.RequireEmitted(t, outboxgorm.Tx(tx), pgstream.Stream{}, event)
		})
	}
}
