package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/packfinderz/internal/metrics"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/pgstore"
)

// numbers counts what the publisher did, and reads the state of the table. It is a hook of the relay.
type numbers struct {
	pool     *pgxpool.Pool
	store    *pgstore.Store
	dlq      string // the statement that counts the dead letters
	attempts metrics.Counter
	latency  metrics.Latency
}

// OnSettle counts the outcomes of a batch.
func (n *numbers) OnSettle(report outbox.BatchReport) {
	for i := range report.Outcomes {
		kind := report.Outcomes[i].Kind.String()
		if slices.Contains(report.Lost, report.Messages[i].ID) {
			kind = "lost"
		}
		n.attempts.Add(kind, 1)
	}
	n.latency.Observe(report.Publish)
}

// outcomes are the labels of the counter, so that each has a value from the start.
func outcomes() []string {
	return []string{outbox.Delivered.String(), outbox.Failed.String(), outbox.Died.String(), outbox.Released.String(), outbox.Stopped.String(), "lost"}
}

// dlqSQL counts the open dead letters of a layout by reason. In a table without retried_at all are open: a retry
// deletes its letter.
func dlqSQL(layout layouts.Layout) string {
	d := &layout.DeadLetter.Columns
	letters := pgx.Identifier{layout.DeadLetter.Table}
	if layout.Schema != "" {
		letters = pgx.Identifier{layout.Schema, layout.DeadLetter.Table}
	}
	open := "true"
	if !d.RetriedAt.IsZero() {
		open = pgx.Identifier{d.RetriedAt.Name}.Sanitize() + " IS NULL"
	}
	return fmt.Sprintf("SELECT %s::text, count(*) FROM %s WHERE %s GROUP BY 1", pgx.Identifier{d.Reason.Name}.Sanitize(), letters.Sanitize(), open)
}

func (n *numbers) write(ctx context.Context, w *metrics.Writer) error {
	stats, err := n.store.Stats(ctx)
	if err != nil {
		return err
	}
	dead, err := n.dead(ctx)
	if err != nil {
		return err
	}
	w.Single("packfinderz_outbox_backlog_events", "gauge", "Events that are neither published nor dead.",
		float64(stats.Due+stats.Scheduled+stats.Retrying+stats.Held+stats.Exhausted))
	w.Single("packfinderz_outbox_oldest_seconds", "gauge", "Age of the oldest event that is neither published nor dead.", stats.OldestAge.Seconds())
	w.Single("packfinderz_outbox_max_attempts_events", "gauge", "Events at the maximum of attempts, dead or about to be.",
		float64(stats.Exhausted+dead[enums.ReasonMaxAttempts]))
	const dlq = "packfinderz_outbox_dlq_events"
	w.Family(dlq, "gauge", "Dead letters that nobody has retried, by reason.")
	for _, reason := range enums.ErrorReasons() {
		w.Sample(dlq, "reason", string(reason), float64(dead[reason]))
	}
	n.attempts.Write(w, "packfinderz_outbox_attempts_total", "Events that were claimed, by what became of them.", "outcome", outcomes()...)
	n.latency.Write(w, "packfinderz_outbox_publish_seconds", "Time from handing a batch over to its last acknowledgement.")
	return nil
}

func (n *numbers) dead(ctx context.Context) (map[enums.ErrorReason]int64, error) {
	rows, _ := n.pool.Query(ctx, n.dlq) // the rows say what failed
	dead := make(map[enums.ErrorReason]int64)
	var reason string
	var count int64
	_, err := pgx.ForEachRow(rows, []any{&reason, &count}, func() error {
		dead[enums.ErrorReason(reason)] = count
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the dead letters: %w", err)
	}
	return dead, nil
}
