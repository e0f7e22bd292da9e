package outbox_test

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// A licence is verified, and everybody who wants to know will hear of it: both or neither.
func ExampleService_Emit() {
	files, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(`CREATE TABLE licenses (id uuid PRIMARY KEY, status text)`, files)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	conn := stdlib.OpenDBFromPool(pool)
	defer func() { _ = conn.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	service, err := outbox.NewService()
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
