package modkit_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// exampleTable is the table, with a message of each topic in it. What fails is printed, so that the
// example fails.
func exampleTable(topics ...string) (context.Context, *pgxpool.Pool, func()) {
	ctx := context.Background()
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		fmt.Println(err)
	}
	pool, done, err := pgtest.Example(`CREATE TABLE turns (id uuid PRIMARY KEY, tokens bigint)`, files)
	if err != nil {
		fmt.Println(err)
	}
	for _, topic := range topics {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := modkit.Enqueue(ctx, tx, modkit.Message{
				Namespace: "mini-chat", Topic: topic, Payload: []byte(fmt.Sprintf(`{"topic": %q}`, topic)),
			})
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	return ctx, pool, done
}

// exampleModule is a module on such a table.
func exampleModule(topics ...string) (context.Context, *pgxpool.Pool, *modkit.Module, func()) {
	ctx, pool, done := exampleTable(topics...)
	module, err := modkit.NewModule(pool, modkit.Config{Namespace: "mini-chat"})
	if err != nil {
		fmt.Println(err)
	}
	return ctx, pool, module, done
}

// claimed are the messages that there are.
func claimed(ctx context.Context, module *modkit.Module) []modkit.ClaimedMessage {
	messages, err := module.ClaimBatch(ctx, modkit.ClaimCfg{BatchSize: 10})
	if err != nil {
		fmt.Println(err)
	}
	return messages
}
