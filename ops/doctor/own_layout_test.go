package doctor_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/outboxpgx"
)

// TestOwnLayout does what doctor says, until a table of the user's own layout is well. The program has no migrations
// for it.
func TestOwnLayout(t *testing.T) {
	t.Parallel()
	bytes := layouttest.Lettered()
	bytes.Columns.Payload.Type = "bytea"
	bytes.Columns.LastError = layouts.Column{Name: "error", MaxLength: 200, NotNull: true}
	for name, layout := range map[string]layouts.Layout{"leased": layouttest.Leased(), "lettered": layouttest.Lettered(), "bytes": bytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &patient{pool: pgtest.Pool(t), place: ops.Place{Layout: &layout}}
			missing := p.finds(t, "layout", doctor.Problem, `there is no table "events"`, "make the table: CREATE TABLE")
			if text := missing.Seen + missing.Do; strings.Contains(text, "migrate up") {
				t.Errorf("doctor recommends a command that cannot work: %s", text)
			}
			p.finds(t, "privileges", doctor.Note, `there is no table "events"`, "See the check layout.")
			_, create, _ := strings.Cut(missing.Do, "make the table: ")
			pgtest.Exec(t, p.pool, create)
			p.isWell(t, "layout")
			for _, f := range p.examine(t, "indexes").Findings {
				if f.Severity > doctor.OK {
					pgtest.Exec(t, p.pool, f.Do)
				}
			}
			p.isWell(t, "indexes")
			emitter, err := outboxpgx.New(layout, outbox.EmitConfig{})
			if err != nil {
				t.Fatal(err)
			}
			err = emitter.InTx(t.Context(), p.pool, func(tx pgx.Tx) error {
				_, err := emitter.Emit(t.Context(), tx, outbox.Event{Topic: map[bool]string{true: "a"}[layout.Columns.Topic.Name != ""], Payload: []byte(`{}`)})
				return err
			})
			if err != nil {
				t.Error(err)
			}
			p.isWell(t, "stuck")
			if layout.DeadLetter != nil {
				pgtest.Exec(t, p.pool, `DROP TABLE letters`)
				p.finds(t, "privileges", doctor.Note, `there is no table "letters"`)
			}
		})
	}
}

// TestUnknownStatusOfSmallTable looks for such rows in a table without any index, because it is small.
func TestUnknownStatusOfSmallTable(t *testing.T) {
	t.Parallel()
	layout := layouttest.Leased()
	p := &patient{pool: pgtest.Pool(t), place: ops.Place{Layout: &layout}}
	_, create, _ := strings.Cut(p.finds(t, "layout", doctor.Problem).Do, "make the table: ")
	pgtest.Exec(t, p.pool, strings.Replace(create, "PRIMARY KEY", "", 1))
	p.isWell(t, "stuck")
	pgtest.Exec(t, p.pool, `INSERT INTO events (id, state) VALUES (gen_random_uuid(), 'lost')`)
	p.finds(t, "stuck", doctor.Problem, "1 row has a state that the layout does not name")
}
