package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
)

// The smallest outbox there is, for one relay: a table, a mark on what is done.
const (
	handTable = `CREATE TABLE hand (seq bigserial PRIMARY KEY, id uuid NOT NULL, type text NOT NULL, payload jsonb NOT NULL, done boolean NOT NULL DEFAULT false);
		CREATE INDEX ON hand (seq) WHERE NOT done`
	handEmit   = `INSERT INTO hand (id, type, payload) VALUES ($1, $2, $3)`
	handClaim  = `SELECT seq, id, type, payload FROM hand WHERE NOT done ORDER BY seq LIMIT 1000`
	handSettle = `UPDATE hand SET done = true WHERE seq = ANY($1)`
)

// handMade is what others are measured beside: the same producers, woken the same way, and a loop
// without leases, retries or checks. What it takes is what the machine and the server take.
func handMade() *subject {
	return &subject{
		name: "by hand: commit to publish, woken",
		migrate: func(ctx context.Context, pool *pgxpool.Pool) error {
			if _, err := pool.Exec(ctx, handTable); err != nil {
				return fmt.Errorf("make a table: %w", err)
			}
			return nil
		},
		start: func(ctx context.Context, pool *pgxpool.Pool, watch *latencyWatch) (emitFunc, func(), error) {
			ctx, cancel := context.WithCancel(ctx)
			wake := make(chan struct{}, 1)
			var loop sync.WaitGroup
			loop.Go(func() { publishByHand(ctx, pool, wake, watch) })
			emit := func(ctx context.Context, pool *pgxpool.Pool) error {
				id := uuid.Must(uuid.NewV7())
				err := pgx.BeginTxFunc(ctx, watchedPool{pool, func() { watch.commit(id) }}, pgx.TxOptions{}, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, handEmit, id, "order_created", payload())
					return err
				})
				select {
				case wake <- struct{}{}:
				default:
				}
				return err
			}
			stop := func() {
				cancel()
				loop.Wait()
			}
			return emit, stop, nil
		},
	}
}

// publishByHand ends with ctx, or at the first error: its events are missed then.
func publishByHand(ctx context.Context, pool *pgxpool.Pool, wake <-chan struct{}, watch *latencyWatch) {
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
		rows, err := pool.Query(ctx, handClaim)
		if err != nil {
			return
		}
		var seqs []int64
		var messages []outbox.Message
		var seq int64
		var message outbox.Message
		_, err = pgx.ForEachRow(rows, []any{&seq, &message.ID, &message.Type, &message.Payload}, func() error {
			seqs, messages = append(seqs, seq), append(messages, message)
			message.Payload = nil
			return nil
		})
		if err != nil {
			return
		}
		watch.Publish(ctx, messages)
		if _, err := pool.Exec(ctx, handSettle, seqs); err != nil {
			return
		}
	}
}
