package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/consumer"
	"github.com/packfinderz/outbox/examples/internal/database"
)

// billing is the other end, a service with a database of its own: it hears of usage through the
// broker, and knows nothing of the chat's tables.
type billing struct {
	pool     *pgxpool.Pool
	consumer *consumer.Consumer
	dead     *natsjs.Publisher
}

// newBilling makes the tables that are missing, and the parts of the service. Nothing runs yet.
func newBilling(ctx context.Context, db *database.Database, broker natsjs.Config, log *slog.Logger) (*billing, error) {
	if err := migrate(ctx, db, "billing"); err != nil {
		return nil, err
	}
	dead, err := natsjs.New(broker)
	if err != nil {
		return nil, err
	}
	b := &billing{pool: db.Pool, dead: dead}
	set, err := handlers.New(handlers.Config{Logger: log})
	if err != nil {
		return nil, err
	}
	if err := set.Otherwise("bill", b.bill); err != nil {
		return nil, err
	}
	b.consumer, err = consumer.New(consumer.Config{
		Broker: broker, Topics: []string{topic}, Durable: "billing",
		AckWait: 2 * time.Second, // as long as the chat's lease
		Process: consume.Config{
			Concurrency: 2, // requests are to find a connection, too
			Handlers:    set, Retry: outbox.RetryPolicy{Base: 50 * time.Millisecond, Max: time.Second}, Logger: log,
			// What nobody can count must not stand in the way of what can be.
			DeadLetters: dead, DeadLetterTopic: deadTopic,
		},
	})
	return b, err
}

// bill counts the usage of one turn. It may be given one twice, so that it counts a turn only if
// it has not counted it before, in the same transaction. When that fails, the database is at fault
// and not the usage, which comes again until it is counted; unless it is nothing that can be stored.
func (b *billing) bill(ctx context.Context, message outbox.Message) error {
	var u usage
	if err := json.Unmarshal(message.Payload, &u); err != nil {
		return outbox.Terminal(fmt.Errorf("read the usage: %w", err))
	}
	if u.Tokens < 0 {
		return outbox.Terminal(fmt.Errorf("the usage is of %d tokens", u.Tokens))
	}
	if u.dedupeKey() != message.DedupeKey {
		return outbox.Terminal(fmt.Errorf("the usage is of %s, and the message of %s", u.dedupeKey(), message.DedupeKey))
	}
	err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return count(ctx, tx, u) })
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, dataException):
		return outbox.Terminal(err)
	}
	return outbox.Unavailable(err)
}

// dataException begins PostgreSQL's codes for values that it cannot store.
const dataException = "22"

// count adds the usage of a turn to its tenant's account, unless it was counted before.
func count(ctx context.Context, tx pgx.Tx, u usage) error {
	tag, err := tx.Exec(ctx, `INSERT INTO billing_usage (tenant_id, turn_id, request_id, outcome, tokens)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, u.Tenant, u.Turn, u.Request, u.Outcome, u.Tokens)
	if err != nil {
		return fmt.Errorf("note the usage: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil // counted before
	}
	_, err = tx.Exec(ctx, `INSERT INTO billing_accounts AS a (tenant_id, turns, tokens) VALUES ($1, 1, $2)
			ON CONFLICT (tenant_id) DO UPDATE SET turns = a.turns + 1, tokens = a.tokens + excluded.tokens`, u.Tenant, u.Tokens)
	if err != nil {
		return fmt.Errorf("count the usage: %w", err)
	}
	return nil
}

// account is what billing has counted for a tenant.
type account struct {
	Turns  int64 `json:"turns"`
	Tokens int64 `json:"tokens"`
}

func (b *billing) account(ctx context.Context, id uuid.UUID) (a account, err error) {
	err = b.pool.QueryRow(ctx, `SELECT coalesce(sum(turns), 0)::bigint, coalesce(sum(tokens), 0)::bigint
		FROM billing_accounts WHERE tenant_id = $1`, id).Scan(&a.Turns, &a.Tokens)
	if err != nil {
		return a, fmt.Errorf("read the account: %w", err)
	}
	return a, nil
}
