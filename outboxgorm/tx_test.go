package outboxgorm_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxgorm"
)

// TestTx gives a GORM transaction to the library's own calls: the messages exist with the caller's change or not at
// all, a key exists once, and anything else than a transaction is refused.
func TestTx(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]gorm.Config{"plain": {}, "prepared statements": {PrepareStmt: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pool := pgtest.Connect(t, url)
			files, err := modkit.Migrations(modkit.Layout())
			if err != nil {
				t.Fatal(err)
			}
			pgtest.Migrate(t, pool, "", files)
			pgtest.Exec(t, pool, `CREATE TABLE turns (id int)`)
			db := open(t, url, config)
			tenant := uuid.New()
			message := modkit.Message{
				Namespace: "mini-chat", Topic: "usage", TenantID: tenant, DedupeKey: tenant.String() + "/turn", Payload: []byte(`{}`),
			}
			undo := errors.New("undo")
			var first, again []modkit.Enqueued
			for _, end := range []error{undo, nil} {
				err := db.Transaction(func(tx *gorm.DB) (err error) {
					if err := tx.Exec(`INSERT INTO turns VALUES (1)`).Error; err != nil {
						return err
					}
					if first, err = modkit.Enqueue(t.Context(), outboxgorm.Tx(tx), message, message); err != nil {
						return err
					}
					if again, err = modkit.Enqueue(t.Context(), outboxgorm.Tx(tx), message); err != nil {
						return err
					}
					return end
				})
				if !errors.Is(err, end) {
					t.Fatal(err)
				}
				var turns, events, want int64
				if end == nil {
					want = 1
				}
				err = pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM modkit_outbox_events)`).Scan(&turns, &events)
				if err != nil || turns != want || events != want {
					t.Errorf("%d turns and %d events, want %d of each: %v", turns, events, want, err)
				}
			}
			if len(first) != 2 || first[0].AlreadyEnqueued || !first[1].AlreadyEnqueued || !again[0].AlreadyEnqueued || again[0].ID != first[0].ID {
				t.Errorf("enqueued %+v and %+v", first, again)
			}
			if _, err := modkit.Enqueue(t.Context(), outboxgorm.Tx(db), message); !errors.Is(err, outboxgorm.ErrNoTransaction) {
				t.Errorf("outside of a transaction: %v", err)
			}
			if _, err := modkit.Enqueue(t.Context(), outboxgorm.Tx(nil), message); err == nil {
				t.Error("nil was used as a transaction")
			}
			if _, err := modkit.Enqueue(t.Context(), db, message); !errors.Is(err, modkit.ErrNoTransaction) {
				t.Errorf("a *gorm.DB itself: %v", err)
			}
		})
	}
}
