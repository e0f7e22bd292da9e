package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/consumer"
)

const (
	// ledgerSQL lets anything in: what keeps the entries right is the inbox.
	ledgerSQL = `CREATE TABLE ledger (number bigserial PRIMARY KEY, event_id uuid NOT NULL, order_key text NOT NULL, step int NOT NULL)`
	enterSQL  = `INSERT INTO ledger (event_id, order_key, step) VALUES ($1, $2, $3)`
	auditSQL  = `SELECT count(*), count(DISTINCT event_id) FROM ledger`
	// lateSQL are the steps that came after a later one of their order.
	lateSQL = `
SELECT order_key FROM (SELECT order_key, step < lag(step) OVER (PARTITION BY order_key ORDER BY number) AS late FROM ledger) l WHERE late`
)

// billing is the other end: a consumer that writes each event to its ledger, once.
type billing struct {
	pool  *pgxpool.Pool
	inbox *pginbox.Inbox
}

// consumer makes a consumer of the broker's.
func (b *billing) consumer(config natsjs.Config, logger *slog.Logger) (*consumer.Consumer, error) {
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		if err := set.Register(step, "ledger", b.enter); err != nil {
			return nil, err
		}
	}
	return consumer.New(consumer.Config{
		Broker: config, Topics: []string{topic}, Durable: "billing", Ordered: true,
		AckWait: 2 * time.Second, // an outage is over sooner than the usual 30 s
		Process: consume.Config{Handlers: set, Unknown: consume.IgnoreUnknown, Logger: logger},
	})
}

// enter writes the event to the ledger. However often it is delivered, the entry and the mark
// that it was made are one commit.
func (b *billing) enter(ctx context.Context, m outbox.Message) error {
	_, err := b.inbox.Handle(ctx, b.pool, "billing", m.ID, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, enterSQL, m.ID, m.Key, slices.Index(steps, m.Type)+1); err != nil {
			return fmt.Errorf("write to the ledger: %w", err)
		}
		return nil
	})
	return err
}

// audit counts the entries, the events they are of, and the steps that came too late. A poisoned
// step comes whenever a person retries it: that is not too late.
func (b *billing) audit(ctx context.Context) (entries, events, late int64, err error) {
	if err := b.pool.QueryRow(ctx, auditSQL).Scan(&entries, &events); err != nil {
		return 0, 0, 0, fmt.Errorf("read the ledger: %w", err)
	}
	rows, err := b.pool.Query(ctx, lateSQL)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read the ledger: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read the ledger: %w", err)
	}
	for _, key := range keys {
		if !poisoned(key) {
			late++
		}
	}
	return entries, events, late, nil
}
