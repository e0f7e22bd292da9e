package outbox_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

// An event that a person gives up leaves a DLQ row with its envelope, and is not fetched any more. If the
// transaction fails there is neither.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	repository := newDLQRepository(t, db)
	event := emit(t, db, licenseEvent()).ID
	cause := errors.New("the store is gone")

	err := db.Transaction(func(tx *gorm.DB) error {
		if _, err := repository.GiveUp(tx, event, enums.ReasonTerminal, cause); err != nil {
			t.Error(err)
		}
		return errChangedMind
	})
	if !errors.Is(err, errChangedMind) {
		t.Fatal(err)
	}
	if letters, err := repository.ByEvent(t.Context(), event); err != nil || len(letters) != 0 {
		t.Fatalf("after a rollback there are %d DLQ rows (%v)", len(letters), err)
	}
	if n := fetchable(t, db); n != 1 {
		t.Fatalf("after a rollback %d events can be fetched", n)
	}

	giveUp := func(id uuid.UUID) error {
		return db.Transaction(func(tx *gorm.DB) error {
			_, err := repository.GiveUp(tx, id, enums.ReasonTerminal, cause)
			return err
		})
	}
	if err := giveUp(event); err != nil {
		t.Fatal(err)
	}
	letters, err := repository.ByEvent(t.Context(), event)
	if err != nil || len(letters) != 1 {
		t.Fatalf("there are %d DLQ rows (%v)", len(letters), err)
	}
	var row model.OutboxEvent
	if err := db.Take(&row, "id = ?", event).Error; err != nil {
		t.Fatal(err)
	}
	letter := letters[0]
	if letter.ErrorReason != enums.ReasonTerminal || letter.EventType != row.EventType || letter.AggregateType != row.AggregateType ||
		letter.AggregateID != row.AggregateID || string(letter.PayloadJSON) != string(row.PayloadJSON) || !letter.CreatedAt.Equal(row.CreatedAt) ||
		letter.FailedAt.IsZero() || row.PublishedAt != nil || row.LastError == nil || *row.LastError != cause.Error() {
		t.Errorf("the DLQ row is %+v of %+v", letter, row)
	}
	if n := fetchable(t, db); n != 0 {
		t.Errorf("%d events can be fetched, and the only one is dead", n)
	}
	for name, id := range map[string]uuid.UUID{"a dead event": event, "no event": uuid.New()} {
		if err := giveUp(id); !errors.Is(err, outbox.ErrNotWaiting) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := repository.GiveUp(db, event, enums.ReasonTerminal, cause); !errors.Is(err, outboxgorm.ErrNoTransaction) {
		t.Errorf("outside a transaction: %v", err)
	}
}

// Giving an event up waits for a publisher that has it. If that one moves the event to dead, there is nothing left to
// give up, and one DLQ row.
func TestGiveUpWaits(t *testing.T) {
	t.Parallel()
	pool := pftest.Pool(t)
	db := pftest.GORM(t, pool)
	event := emit(t, db, licenseEvent()).ID
	publisher := newRepository(t, db, 1)
	fetched, err := publisher.FetchUnpublishedForPublish(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer fetched.Rollback()
	repository := newDLQRepository(t, db)
	givenUp := make(chan error, 1)
	go func() {
		givenUp <- db.Transaction(func(tx *gorm.DB) error {
			_, err := repository.GiveUp(tx, event, enums.ReasonTerminal, errChangedMind)
			return err
		})
	}()
	testdb.AwaitBlocked(t, pool, 1)
	if err := fetched.MarkFailed(event, errors.New("busy")); err != nil {
		t.Fatal(err)
	}
	if err := fetched.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-givenUp; !errors.Is(err, outbox.ErrNotWaiting) {
		t.Errorf("a dead event was given up: %v", err)
	}
	letters, err := repository.ByEvent(t.Context(), event)
	if err != nil || len(letters) != 1 || letters[0].ErrorReason != enums.ReasonMaxAttempts {
		t.Errorf("the DLQ rows are %+v (%v)", letters, err)
	}
}

// List chooses by reason, type and time, and leaves out what was retried.
func TestListDLQ(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	repository := newDLQRepository(t, db)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i, letter := range []model.OutboxDLQ{
		{EventType: enums.AdPaused, ErrorReason: enums.ReasonRejected, FailedAt: now.Add(-3 * time.Hour)},
		{EventType: enums.AdPaused, ErrorReason: enums.ReasonMaxAttempts, FailedAt: now.Add(-2 * time.Hour)},
		{EventType: enums.AdExpired, ErrorReason: enums.ReasonRejected, FailedAt: now.Add(-time.Hour)},
		{EventType: enums.AdExpired, ErrorReason: enums.ReasonRejected, FailedAt: now, RetriedAt: &now},
	} {
		letter.EventID, letter.AggregateType, letter.AggregateID = uuid.New(), enums.AggregateAd, uuid.New()
		letter.PayloadJSON, letter.CreatedAt, letter.AttemptCount = json.RawMessage(`{}`), now.Add(-4*time.Hour), i+1
		if err := db.Create(&letter).Error; err != nil {
			t.Fatal(err)
		}
	}
	for want, filter := range map[string]outbox.DLQFilter{
		"3 2 1": {},
		"3 1":   {Reason: enums.ReasonRejected},
		"2 1":   {EventType: enums.AdPaused},
		"3 2":   {Since: now.Add(-150 * time.Minute)},
		"3":     {Limit: 1},
	} {
		letters, err := repository.List(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, letter := range letters {
			got = append(got, string(rune('0'+letter.AttemptCount)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v gives %v, want %s", filter, got, want)
		}
	}
}

func newDLQRepository(t *testing.T, db *gorm.DB) *outbox.DLQRepository {
	t.Helper()
	repository, err := outbox.NewDLQRepository(db)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}
