package outbox_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

func newRepository(t *testing.T, db *gorm.DB, maxAttempts int) *outbox.RowRepository {
	t.Helper()
	repository, err := outbox.NewRepository(t.Context(), db, outbox.RepositoryConfig{MaxAttempts: maxAttempts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repository.Close)
	return repository
}

// fetchable is how many rows a publisher would get.
func fetchable(t *testing.T, db *gorm.DB) int {
	t.Helper()
	repository := newRepository(t, db, 0)
	fetched, err := repository.FetchUnpublishedForPublish(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer fetched.Rollback()
	return len(fetched.Events())
}

// Rows are marked one by one: published, failed and fetched again, failed for the last time, and left alone.
func TestFetchAndMark(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	ids := make([]uuid.UUID, 4)
	for i := range ids {
		ids[i] = emit(t, db, licenseEvent()).ID
	}
	timeout := errors.New("timeout")
	for round, first := range []int{0, 1} {
		// One that goes on looks at what is new before it looks at what has failed.
		repository := newRepository(t, db, 2)
		fetched, err := repository.FetchUnpublishedForPublish(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		defer fetched.Rollback() // does nothing after the commit
		if len(fetched.Events()) != 3 || fetched.Events()[0].ID != ids[first] {
			t.Fatalf("round %d fetched %v", round, fetched.Events())
		}
		marks := []error{fetched.MarkFailed(ids[1], timeout), fetched.MarkFailed(ids[2], timeout)}
		if round == 0 {
			marks = append(marks, fetched.MarkPublished(ids[0]))
		}
		if err := errors.Join(append(marks, fetched.Commit(t.Context()))...); err != nil {
			t.Fatal(err)
		}
	}
	var letters []model.OutboxDLQ
	if err := db.Find(&letters).Error; err != nil || len(letters) != 2 {
		t.Fatalf("%d DLQ rows (%v), want 2", len(letters), err)
	}
	for _, letter := range letters {
		if letter.ErrorReason != enums.ReasonMaxAttempts || letter.AttemptCount != 2 || letter.LastError == nil || *letter.LastError != timeout.Error() {
			t.Errorf("the DLQ row is %+v", letter)
		}
	}
	var published model.OutboxEvent
	if err := db.Take(&published, "published_at IS NOT NULL").Error; err != nil || published.ID != ids[0] {
		t.Errorf("published is %s (%v), want %s", published.ID, err, ids[0])
	}
	if n := fetchable(t, db); n != 1 {
		t.Errorf("%d rows can be fetched, want 1", n)
	}
	if _, err := outbox.NewRepository(t.Context(), db, outbox.RepositoryConfig{MaxAttempts: -1}); err == nil {
		t.Error("a negative maximum was taken")
	}
}

// What is used after its end, or without what it needs, says so; and an end that nobody made does not keep Close waiting.
func TestFetchedEnds(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	id := emit(t, db, licenseEvent()).ID
	fetch := func(repository *outbox.RowRepository) outbox.Fetched {
		fetched, err := repository.FetchUnpublishedForPublish(t.Context(), 1)
		if err != nil || len(fetched.Events()) != 1 {
			t.Fatalf("fetched %v, %v", fetched, err)
		}
		return fetched
	}
	repository := newRepository(t, db, 0)
	fetched := fetch(repository)
	if err := fetched.MarkFailed(id, nil); err == nil {
		t.Error("a failure without an error was taken")
	}
	if err := fetched.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fetched.MarkPublished(id) == nil || fetched.MarkFailed(id, errors.New("late")) == nil || fetched.Commit(t.Context()) == nil {
		t.Error("rows were marked or committed after their end")
	}
	left := fetch(repository)
	repository.Close()
	if left.MarkPublished(id) == nil || left.Commit(t.Context()) == nil {
		t.Error("rows of a repository that is closed were marked")
	}
	if n := fetchable(t, db); n != 1 {
		t.Errorf("%d rows can be fetched after the repository was closed, want 1", n)
	}
}
