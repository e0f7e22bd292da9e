package pginbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// payInvoice is an example of docs/consuming.md: it is called for every delivery.
func payInvoice(ctx context.Context, pool *pgxpool.Pool, in *pginbox.Inbox, event uuid.UUID) (ran bool, err error) {
	return in.Handle(ctx, pool, "billing", event, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE accounts SET balance = balance - 20 WHERE id = 7`)
		return err
	})
}

// An event is delivered twice, and its invoice is paid once.
func ExampleInbox_Handle() {
	ctx := context.Background()
	pool, in, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	event := uuid.MustParse("0198c1f2-7b1e-7cc3-98c4-dc0c0c07398f")
	for range 2 {
		ran, err := payInvoice(ctx, pool, in, event)
		fmt.Println("paid now:", ran, err)
	}
	var balance int
	err = pool.QueryRow(ctx, `SELECT balance FROM accounts`).Scan(&balance)
	fmt.Println("balance:", balance, err)
	// Output:
	// paid now: true <nil>
	// paid now: false <nil>
	// balance: 80 <nil>
}

// Mark is for a consumer that has its own way of running transactions.
func ExampleInbox_Mark() {
	ctx := context.Background()
	pool, in, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	event := uuid.MustParse("0198c1f2-7b1e-7cc3-98c4-dc0c0c07398f")
	for range 2 {
		err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
			first, err := in.Mark(ctx, tx, "billing", event)
			if err != nil || !first {
				fmt.Println("paid before")
				return err
			}
			fmt.Println("paying")
			_, err = tx.Exec(ctx, `UPDATE accounts SET balance = balance - 20 WHERE id = 7`)
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// paying
	// paid before
}

// The same with database/sql.
func ExampleInbox_HandleSQL() {
	ctx := context.Background()
	pool, in, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	db := stdlib.OpenDBFromPool(pool) // or sql.Open, with any PostgreSQL driver
	defer func() { _ = db.Close() }()

	event := uuid.MustParse("0198c1f2-7b1e-7cc3-98c4-dc0c0c07398f")
	for range 2 {
		ran, err := in.HandleSQL(ctx, db, "billing", event, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance - 20 WHERE id = 7`)
			return err
		})
		fmt.Println("paid now:", ran, err)
	}
	// Output:
	// paid now: true <nil>
	// paid now: false <nil>
}

// A purge must leave what may still be delivered again.
func ExampleInbox_Purge() {
	ctx := context.Background()
	pool, in, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	_, err = in.Purge(ctx, pool, 24*time.Hour)
	fmt.Println(err)
	n, err := in.Purge(ctx, pool, 30*24*time.Hour)
	fmt.Println(n, err)
	// Output:
	// inbox: handled events would be forgotten after 24h0m0s, but may be delivered again for 168h0m0s
	// 0 <nil>
}

// exampleDatabase is a PostgreSQL with an inbox and an account in it.
func exampleDatabase() (*pgxpool.Pool, *pginbox.Inbox, func(), error) {
	config := pginbox.Config{Horizon: 7 * 24 * time.Hour}
	files, err := pginbox.Migrations(config)
	if err != nil {
		return nil, nil, nil, err
	}
	in, err := pginbox.New(config)
	if err != nil {
		return nil, nil, nil, err
	}
	pool, done, err := pgtest.Example(`CREATE TABLE accounts AS SELECT 7 AS id, 100 AS balance`, files)
	return pool, in, done, err
}
