package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/outboxpgx"
)

// place stores an order and emits its event in one transaction.
func place(ctx context.Context, db *database.Database, emitter *outboxpgx.Emitter, total int64) (order, error) {
	o := order{Total: total}
	err := emitter.InTx(ctx, db.Pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `INSERT INTO orders (total) VALUES ($1) RETURNING id`, o.Total).Scan(&o.ID); err != nil {
			return fmt.Errorf("store the order: %w", err)
		}
		payload, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("write the event: %w", err)
		}
		_, err = emitter.Emit(ctx, tx, outbox.Event{Type: "order_placed", Key: fmt.Sprintf("order/%d", o.ID), Payload: payload})
		return err
	})
	return o, err
}
