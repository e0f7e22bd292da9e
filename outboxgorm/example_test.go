package outboxgorm_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxgorm"
)

// User is a model of the application.
type User struct {
	ID    uint
	Email string
}

func Example() {
	files, err := doorito.Migrations(doorito.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(`CREATE TABLE users (id bigserial PRIMARY KEY, email text)`, files)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer func() { _ = sqlDB.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	emitter, err := outboxgorm.New(doorito.Layout(), outbox.EmitConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = db.Transaction(func(tx *gorm.DB) error {
		user := User{Email: "ada@example.com"}
		if err := tx.Create(&user).Error; err != nil {
			return err
		}
		emitted, err := emitter.Emit(ctx, tx, outbox.Event{
			Type: "user.created", AggregateType: "User", AggregateID: fmt.Sprint(user.ID),
			DedupeKey: fmt.Sprintf("user-%d-created", user.ID),
			Payload:   []byte(`{"email": "ada@example.com"}`),
		})
		fmt.Println("already enqueued:", emitted.AlreadyEnqueued)
		return err
	})
	fmt.Println(err)
	// Output:
	// already enqueued: false
	// <nil>
}

// A module that is on GORM gives its transaction to modkit.Enqueue.
func ExampleTx() {
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(``, files)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer func() { _ = sqlDB.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	err = db.Transaction(func(tx *gorm.DB) error {
		// … the module's own changes …
		enqueued, err := modkit.Enqueue(context.Background(), outboxgorm.Tx(tx), modkit.Message{
			Namespace: "mini-chat", Topic: "usage", DedupeKey: "turn-1", Payload: []byte(`{"tokens": 17}`),
		})
		fmt.Println(len(enqueued), "enqueued")
		return err
	})
	fmt.Println(err)
	// Output:
	// 1 enqueued
	// <nil>
}
