package outbox_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	engine "github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

// What is nil is an error that says so, and no panic.
func TestNilArguments(t *testing.T) {
	t.Parallel()
	for _, none := range []*gorm.DB{nil, {}} {
		if _, err := newService(t).Emit(none, licenseEvent()); !errors.Is(err, outboxgorm.ErrNoTransaction) {
			t.Errorf("emit without a transaction: %v", err)
		}
		if _, err := outbox.NewRepository(t.Context(), none, outbox.RepositoryConfig{}); err == nil {
			t.Error("a repository without a database")
		}
		if _, err := outbox.NewDLQRepository(none); err == nil {
			t.Error("a DLQ repository without a database")
		}
	}
	if _, err := newService(t).Emit(nil, outbox.DomainEvent{}); !errors.Is(err, engine.ErrInvalidEvent) {
		t.Errorf("emit nothing: %v", err)
	}
	repository := newDLQRepository(t, pftest.GORM(t, pftest.Pool(t)))
	for _, none := range []*gorm.DB{nil, {}} {
		if _, err := repository.GiveUp(none, uuid.New(), enums.ReasonTerminal, nil); !errors.Is(err, outboxgorm.ErrNoTransaction) {
			t.Errorf("give up without a transaction: %v", err)
		}
	}
}
