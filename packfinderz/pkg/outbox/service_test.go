package outbox_test

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	engine "github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

var errChangedMind = errors.New("changed my mind")

func newService(t *testing.T) *outbox.Service {
	t.Helper()
	service, err := outbox.NewService(outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// emit emits an event in a transaction of its own.
func emit(t *testing.T, db *gorm.DB, event outbox.DomainEvent) engine.Emitted {
	t.Helper()
	var emitted engine.Emitted
	err := db.Transaction(func(tx *gorm.DB) (err error) {
		emitted, err = newService(t).Emit(tx, event)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return emitted
}

// licenseEvent is an event to emit.
func licenseEvent() outbox.DomainEvent {
	license := uuid.New()
	return outbox.DomainEvent{
		AggregateID: license,
		Data:        payloads.LicenseStatusChanged{LicenseID: license, StoreID: uuid.New(), Status: payloads.LicensePending},
	}
}

// The row has the event's fields, and the envelope the row's id.
func TestEmitWritesTheEnvelope(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	event := licenseEvent()
	event.OccurredAt = time.Date(2026, 5, 31, 14, 0, 0, 0, time.FixedZone("CEST", 2*60*60))
	event.Actor = &outbox.ActorRef{Type: "user", ID: "ada"}
	emitted := emit(t, db, event)
	var row model.OutboxEvent
	if err := db.Take(&row, "id = ?", emitted.ID).Error; err != nil {
		t.Fatal(err)
	}
	if row.EventType != enums.LicenseStatusChanged || row.AggregateType != enums.AggregateLicense || row.AggregateID != event.AggregateID ||
		row.PublishedAt != nil || row.AttemptCount != 0 || row.LastError != nil {
		t.Errorf("the row is %+v", row)
	}
	envelope, data, err := payloads.Open[payloads.LicenseStatusChanged](row.PayloadJSON)
	if err != nil {
		t.Fatal(err)
	}
	envelope.Data = nil
	want := outbox.OutboxPayloadEnvelope{
		Version: 1, EventID: row.ID.String(), OccurredAt: time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC), Actor: event.Actor,
	}
	if !reflect.DeepEqual(envelope, want) || data != event.Data {
		t.Errorf("the envelope is %+v with %+v, want %+v with %+v", envelope, data, want, event.Data)
	}
}

// Every payload can be emitted, and is what the registry expects.
func TestEmitEveryEventType(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	for _, payload := range pftest.Payloads() {
		emit(t, db, outbox.DomainEvent{AggregateID: pftest.AggregateOf(payload), Data: payload})
	}
	var types []enums.EventType
	if err := db.Model(&model.OutboxEvent{}).Order("event_type").Pluck("event_type", &types).Error; err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(types, enums.EventTypes()) {
		t.Errorf("emitted were %v", types)
	}
}

// The event exists if and only if the change does.
func TestEmitIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	service := newService(t)
	err := db.Transaction(func(tx *gorm.DB) error {
		if _, err := service.Emit(tx, licenseEvent()); err != nil {
			t.Error(err)
		}
		return errChangedMind
	})
	if !errors.Is(err, errChangedMind) {
		t.Fatal(err)
	}
	wantEvents(t, db, 0)
	if _, err := service.Emit(db, licenseEvent()); !errors.Is(err, outboxgorm.ErrNoTransaction) {
		t.Errorf("outside a transaction: %v", err)
	}
	// The same id a second time, as after a commit whose answer was lost.
	event := licenseEvent()
	event.ID = uuid.New()
	if first, second := emit(t, db, event), emit(t, db, event); first.AlreadyEnqueued || !second.AlreadyEnqueued || second.ID != event.ID {
		t.Errorf("emitted %+v, then %+v", first, second)
	}
	wantEvents(t, db, 1)
}

func wantEvents(t *testing.T, db *gorm.DB, want int64) {
	t.Helper()
	var got int64
	if err := db.Model(&model.OutboxEvent{}).Count(&got).Error; err != nil || got != want {
		t.Errorf("%d events (%v), want %d", got, err, want)
	}
}

// What the publisher would give up is refused, and the transaction can go on.
func TestEmitRefuses(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	service, license := newService(t), uuid.New()
	err := db.Transaction(func(tx *gorm.DB) error {
		for name, event := range map[string]outbox.DomainEvent{
			"no data":         {AggregateID: uuid.New()},
			"nil data":        {AggregateID: uuid.New(), Data: (*payloads.AdPaused)(nil)},
			"no aggregate id": {Data: payloads.AdPaused{}},
			"invalid data":    {AggregateID: license, Data: payloads.LicenseStatusChanged{LicenseID: license, Status: "lost"}},
			"another's data":  {AggregateID: uuid.New(), Data: licenseEvent().Data},
			"unknown type":    {AggregateID: uuid.New(), Data: unknown{}},
			"a far year":      {AggregateID: license, OccurredAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), Data: payloads.AdPaused{}},
		} {
			if _, err := service.Emit(tx, event); !errors.Is(err, engine.ErrInvalidEvent) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := service.Emit(tx, licenseEvent())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantEvents(t, db, 1)
}

// unknown is a payload that nobody has a route for.
type unknown struct{}

func (unknown) EventType() enums.EventType { return "order_teleported" }

func (unknown) AggregateID() uuid.UUID { return uuid.Nil }

func (unknown) Validate() error { return nil }

// Where the data names its aggregate, no other may be the event's: every type refuses one.
func TestEmitRefusesTheAggregateOfAnother(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	named := 0
	err := db.Transaction(func(tx *gorm.DB) error {
		for _, payload := range pftest.Payloads() {
			if payload.AggregateID() == uuid.Nil {
				continue
			}
			named++
			_, err := newService(t).Emit(tx, outbox.DomainEvent{AggregateID: uuid.New(), Data: payload})
			if !errors.Is(err, engine.ErrInvalidEvent) || !strings.Contains(err.Error(), payload.AggregateID().String()) {
				t.Errorf("%T: %v, want its own aggregate to be named", payload, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(enums.EventTypes()) - len([]enums.EventType{enums.AdPaused, enums.AdActivated}); named != want {
		t.Errorf("%d payloads name their aggregate, want %d", named, want)
	}
	wantEvents(t, db, 0)
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
