package outbox_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	engine "github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

// What is nil is an error that says so, and no panic.
func TestNilArguments(t *testing.T) {
	t.Parallel()
	if _, err := newService(t).Emit(nil, licenseEvent()); !errors.Is(err, outboxgorm.ErrNoTransaction) {
		t.Errorf("emit without a transaction: %v", err)
	}
	if _, err := newService(t).Emit(nil, outbox.DomainEvent{}); !errors.Is(err, engine.ErrInvalidEvent) {
		t.Errorf("emit nothing: %v", err)
	}
	if _, err := outbox.NewRepository(t.Context(), nil, outbox.RepositoryConfig{}); err == nil {
		t.Error("a repository without a database")
	}
	if _, err := outbox.NewDLQRepository(nil); err == nil {
		t.Error("a DLQ repository without a database")
	}
	repository := newDLQRepository(t, pftest.GORM(t, pftest.Pool(t)))
	if _, err := repository.GiveUp(nil, uuid.New(), enums.ReasonTerminal, nil); !errors.Is(err, outboxgorm.ErrNoTransaction) {
		t.Errorf("give up without a transaction: %v", err)
	}
}

// A logger is told of every event that was written, and not of one that was refused.
func TestServiceLogs(t *testing.T) {
	t.Parallel()
	log := &logtest.Log{}
	service, err := outbox.NewService(outbox.Config{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	var emitted engine.Emitted
	err = pftest.GORM(t, pftest.Pool(t)).Transaction(func(tx *gorm.DB) (err error) {
		if _, err := service.Emit(tx, outbox.DomainEvent{}); err == nil {
			t.Error("an event of nothing was emitted")
		}
		emitted, err = service.Emit(tx, licenseEvent())
		return err
	})
	if err != nil || log.Count("event_id=") != 1 || log.Count("event_id="+emitted.ID.String()+" event_type=license_status_changed") != 1 {
		t.Errorf("%v; the log says %s", err, log.Text())
	}
}
