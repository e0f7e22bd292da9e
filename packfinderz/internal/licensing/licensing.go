// Package licensing manages licences: stores upload them, admins approve or reject them. A change and its event are one
// transaction.
//
// Every call can be repeated: a repeated call changes nothing and emits nothing.
package licensing

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// Service changes stores and licences. It is safe for concurrent use.
type Service struct {
	db     *gorm.DB
	events outbox.Emitter
}

// New returns a service on a database with the tables of package migrations and of the outbox.
func New(db *gorm.DB, events outbox.Emitter) (*Service, error) {
	if db == nil || events == nil {
		return nil, errors.New("licensing: the database or the emitter is nil")
	}
	return &Service{db, events}, nil
}

// CreateStore creates a store; created is false if it existed already.
func (s *Service) CreateStore(ctx context.Context, id uuid.UUID, name string) (store Store, created bool, err error) {
	if name, err = text("name", name); err != nil {
		return store, false, err
	}
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if created, err = create(tx, &Store{ID: id, Name: name}); err != nil {
			return fmt.Errorf("store a store: %w", err)
		}
		if err := find(tx, &store, "store", id); err != nil {
			return err
		}
		if store.Name != name {
			return fmt.Errorf("%w: store %s is there and has another name", ErrConflict, id)
		}
		return nil
	})
	return store, created, err
}

// Upload adds a licence to a store, for review; created is false if it existed already.
func (s *Service) Upload(
	ctx context.Context, actor *outbox.ActorRef, storeID, id uuid.UUID, number string,
) (license License, created bool, err error) {
	if number, err = text("number", number); err != nil {
		return license, false, err
	}
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := find(tx, &Store{}, "store", storeID); err != nil {
			return err
		}
		created, err = create(tx, &License{ID: id, StoreID: storeID, Number: number, Status: payloads.LicensePending})
		if err != nil {
			return fmt.Errorf("store a licence: %w", err)
		}
		if err := find(tx, &license, "licence", id); err != nil {
			return err
		}
		switch {
		case license.StoreID != storeID || license.Number != number:
			return fmt.Errorf("%w: licence %s is there and has another store or number", ErrConflict, id)
		case created:
			return s.emit(tx, actor, &license)
		}
		return nil
	})
	return license, created, err
}

// Approve verifies a pending licence.
func (s *Service) Approve(ctx context.Context, actor *outbox.ActorRef, id uuid.UUID) (License, error) {
	return s.decide(ctx, actor, id, payloads.LicenseVerified, "")
}

// Reject rejects a pending licence, with a reason for the store.
func (s *Service) Reject(ctx context.Context, actor *outbox.ActorRef, id uuid.UUID, reason string) (License, error) {
	reason, err := text("reason", reason)
	if err != nil {
		return License{}, err
	}
	return s.decide(ctx, actor, id, payloads.LicenseRejected, reason)
}

// decide locks the licence first, so that of two concurrent decisions the second sees the first.
func (s *Service) decide(
	ctx context.Context, actor *outbox.ActorRef, id uuid.UUID, status payloads.LicenseStatus, reason string,
) (license License, err error) {
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := find(tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}), &license, "licence", id); err != nil {
			return err
		}
		switch {
		case license.Status == status && license.Reason == reason:
			return nil
		case license.Status == status:
			return fmt.Errorf("%w: licence %s is %s already, for another reason", ErrConflict, id, status)
		case license.Status != payloads.LicensePending:
			return fmt.Errorf("%w: licence %s is %s; only a pending one can be %s", ErrConflict, id, license.Status, status)
		}
		err := tx.Model(&license).Clauses(clause.Returning{}).
			Updates(map[string]any{"status": status, "reason": reason, "updated_at": gorm.Expr("now()")}).Error
		if err != nil {
			return fmt.Errorf("decide on licence %s: %w", id, err)
		}
		return s.emit(tx, actor, &license)
	})
	return license, err
}

// License returns a licence.
func (s *Service) License(ctx context.Context, id uuid.UUID) (license License, err error) {
	return license, find(s.db.WithContext(ctx), &license, "licence", id)
}

// Notifications returns the notifications about a licence, oldest first.
func (s *Service) Notifications(ctx context.Context, license uuid.UUID) ([]Notification, error) {
	list := []Notification{}
	err := s.db.WithContext(ctx).Order("created_at, id").Find(&list, "license_id = ?", license).Error
	if err != nil {
		return nil, fmt.Errorf("read the notifications of licence %s: %w", license, err)
	}
	return list, nil
}

// emit emits the licence's new status, in the transaction that changes it.
func (s *Service) emit(tx *gorm.DB, actor *outbox.ActorRef, license *License) error {
	_, err := s.events.Emit(tx, outbox.DomainEvent{
		AggregateID: license.ID, Actor: actor,
		Data: payloads.LicenseStatusChanged{
			LicenseID: license.ID, StoreID: license.StoreID, Status: license.Status, Reason: license.Reason,
		},
	})
	return err
}

// create inserts a row unless its id exists.
func create(tx *gorm.DB, row any) (created bool, err error) {
	done := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(row)
	return done.RowsAffected == 1, done.Error
}

func find(tx *gorm.DB, row any, what string, id uuid.UUID) error {
	err := tx.Take(row, "id = ?", id).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return fmt.Errorf("%w: there is no %s %s", ErrNotFound, what, id)
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", what, id, err)
	}
	return nil
}
