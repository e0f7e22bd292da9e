package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// example is a database with the outbox's tables, and those of a statement of its own.
func example(sql string) (db *gorm.DB, done func(), err error) {
	files, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		return nil, nil, err
	}
	t := new(testserver.Example)
	pool := testdb.Pool(t)
	testdb.Migrate(t, pool, files)
	testdb.Exec(t, pool, sql)
	conn := stdlib.OpenDBFromPool(pool)
	db, err = gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{})
	return db, func() { _ = conn.Close(); t.Done() }, err
}

// A licence is verified, and everybody who wants to know will hear of it: both or neither.
func ExampleService_Emit() {
	db, done, err := example(`CREATE TABLE licenses (id uuid PRIMARY KEY, status text)`) // in a program: gorm.Open
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	service, err := outbox.NewService(outbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	license, store := uuid.New(), uuid.New()
	err = db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("INSERT INTO licenses VALUES (?, 'verified')", license).Error; err != nil {
			return err
		}
		_, err := service.Emit(tx, outbox.DomainEvent{
			AggregateID: license,
			Actor:       &outbox.ActorRef{Type: "admin", ID: "ada"},
			Data:        payloads.LicenseStatusChanged{LicenseID: license, StoreID: store, Status: payloads.LicenseVerified},
		})
		return err
	})
	var events int64
	db.Table("outbox_events").Where("event_type = 'license_status_changed' AND published_at IS NULL").Count(&events)
	fmt.Println(events, err)
	// Output: 1 <nil>
}

// Somebody decides that an event shall not go out.
func ExampleDLQRepository_GiveUp() {
	db, done, err := example("") // in a program: gorm.Open
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	service, err := outbox.NewService(outbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	repository, err := outbox.NewDLQRepository(db)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = db.Transaction(func(tx *gorm.DB) error {
		emitted, err := service.Emit(tx, outbox.DomainEvent{AggregateID: uuid.New(), Data: payloads.AdActivated{}})
		if err != nil {
			return err
		}
		_, err = repository.GiveUp(tx, emitted.ID, enums.ReasonTerminal, errors.New("the store was closed"))
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	letters, err := repository.List(context.Background(), outbox.DLQFilter{Reason: enums.ReasonTerminal})
	for _, letter := range letters {
		fmt.Println(letter.EventType, letter.ErrorReason, *letter.LastError, err)
	}
	// Output: ad_activated terminal the store was closed <nil>
}
