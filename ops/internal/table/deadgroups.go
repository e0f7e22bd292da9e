package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// DeadGroups groups the newest dead events.
func (t *Table) DeadGroups(ctx context.Context) (groups *view.DeadGroups, err error) {
	err = query.ByIndex(ctx, t.pool, func(tx pgx.Tx) error {
		w, err := t.choose(ctx, tx, &view.Filter{State: view.StateDead}, nil)
		if err != nil {
			return err
		}
		c := &t.layout.Columns
		const text = "coalesce(%s::text, '')"
		topic := "''"
		if c.Type.IsZero() {
			topic = orElse(c.Topic, text, "''")
		}
		var args query.Args
		rows := t.rows(w, "", false, nil, query.GroupLimit, &args)
		dead := fmt.Sprintf("SELECT %s AS type, %s AS topic, %s AS error, t.outbox_reason AS reason, %s AS created, %s AS id FROM (\n%s\n) AS t WHERE %s",
			orElse(c.Type, text, "''"), topic, orElse(c.LastError, text, "''"), col(c.CreatedAt), col(c.ID),
			rows, t.layout.Dead())
		// Without an index of dead rows, only the newest rows of the table were read.
		more := fmt.Sprintf("SELECT count(*) >= %d FROM (\n%s\n) AS t", query.GroupLimit, rows)
		groups, err = query.DeadGroups(ctx, tx, dead, more, args)
		return err
	})
	return groups, err
}
