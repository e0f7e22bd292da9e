package licensing_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/licensing"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bench is a service with a store.
type bench struct {
	*testing.T
	pool  *pgxpool.Pool
	calls *licensing.Service
	store uuid.UUID
}

func newBench(t *testing.T) *bench {
	t.Helper()
	_, pool := backendtest.Database(t)
	b := &bench{T: t, pool: pool, calls: backendtest.Licensing(t, pool), store: uuid.New()}
	if _, created, err := b.calls.CreateStore(t.Context(), b.store, "Green Leaf"); err != nil || !created {
		t.Fatalf("create a store: %t, %v", created, err)
	}
	return b
}

// upload uploads a licence, which must be new.
func (b *bench) upload() uuid.UUID {
	b.Helper()
	id := uuid.New()
	if _, created, err := b.calls.Upload(b.Context(), nil, b.store, id, "C11-0000123"); err != nil || !created {
		b.Fatalf("upload: %t, %v", created, err)
	}
	return id
}

// wantEvents compares what was emitted about a licence, as "status reason" in order.
func (b *bench) wantEvents(license uuid.UUID, want ...string) {
	b.Helper()
	var got string
	err := b.pool.QueryRow(b.Context(), `
		SELECT coalesce(string_agg(concat_ws(' ', payload_json #>> '{data,status}', payload_json #>> '{data,reason}'), ', ' ORDER BY created_at, id), '')
		FROM outbox_events
		WHERE event_type = 'license_status_changed' AND aggregate_type = 'license' AND aggregate_id = $1
			AND payload_json #>> '{data,licenseId}' = $1::text AND payload_json #>> '{data,storeId}' = $2::text`, license, b.store).Scan(&got)
	if err != nil {
		b.Fatal(err)
	}
	if got != strings.Join(want, ", ") {
		b.Errorf("emitted %q, want %q", got, want)
	}
}

// TestEveryChangeEmits goes through the life of licences. What is done again changes and emits nothing.
func TestEveryChangeEmits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	verified, rejected := b.upload(), b.upload()
	b.wantEvents(verified, "pending")
	for range 2 {
		license, err := b.calls.Approve(t.Context(), &outbox.ActorRef{Type: "user", ID: "ada"}, verified)
		if err != nil || license.Status != payloads.LicenseVerified {
			t.Fatalf("approve: %+v, %v", license, err)
		}
		license, err = b.calls.Reject(t.Context(), nil, rejected, " expired ")
		if err != nil || license.Status != payloads.LicenseRejected || license.Reason != "expired" || !license.UpdatedAt.After(license.CreatedAt) {
			t.Fatalf("reject: %+v, %v", license, err)
		}
		if _, created, err := b.calls.Upload(t.Context(), nil, b.store, verified, "C11-0000123"); err != nil || created {
			t.Fatalf("upload again: %t, %v", created, err)
		}
		if _, created, err := b.calls.CreateStore(t.Context(), b.store, "Green Leaf"); err != nil || created {
			t.Fatalf("create again: %t, %v", created, err)
		}
	}
	b.wantEvents(verified, "pending", "verified")
	b.wantEvents(rejected, "pending", "rejected expired")
	actors := backendtest.Count(t, b.pool, `SELECT count(*) FROM outbox_events WHERE payload_json -> 'actor' = '{"type": "user", "id": "ada"}'`)
	if actors != 1 {
		t.Errorf("%d events have their actor, want 1", actors)
	}
}

// TestRefusals has requests that do not go with what is there. None of them changes or emits anything.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, verified, rejected := t.Context(), b.upload(), b.upload()
	if _, err := b.calls.Approve(ctx, nil, verified); err != nil {
		t.Fatal(err)
	}
	if _, err := b.calls.Reject(ctx, nil, rejected, "expired"); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ü", 1001)
	for name, c := range map[string]struct {
		want error
		call func() error
	}{
		"approve what is rejected": {licensing.ErrConflict, func() error { _, err := b.calls.Approve(ctx, nil, rejected); return err }},
		"reject what is verified":  {licensing.ErrConflict, func() error { _, err := b.calls.Reject(ctx, nil, verified, "no"); return err }},
		"another reason":           {licensing.ErrConflict, func() error { _, err := b.calls.Reject(ctx, nil, rejected, "no"); return err }},
		"no reason":                {licensing.ErrInvalid, func() error { _, err := b.calls.Reject(ctx, nil, rejected, " "); return err }},
		"a long reason":            {licensing.ErrInvalid, func() error { _, err := b.calls.Reject(ctx, nil, rejected, long); return err }},
		"a reason with a NUL":      {licensing.ErrInvalid, func() error { _, err := b.calls.Reject(ctx, nil, rejected, "a\x00b"); return err }},
		"no such licence":          {licensing.ErrNotFound, func() error { _, err := b.calls.Approve(ctx, nil, uuid.New()); return err }},
		"another number":           {licensing.ErrConflict, func() error { _, _, err := b.calls.Upload(ctx, nil, b.store, verified, "other"); return err }},
		"no such store":            {licensing.ErrNotFound, func() error { _, _, err := b.calls.Upload(ctx, nil, uuid.New(), uuid.New(), "1"); return err }},
		"another name":             {licensing.ErrConflict, func() error { _, _, err := b.calls.CreateStore(ctx, b.store, "other"); return err }},
		"no name":                  {licensing.ErrInvalid, func() error { _, _, err := b.calls.CreateStore(ctx, uuid.New(), ""); return err }},
	} {
		if err := c.call(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	b.wantEvents(verified, "pending", "verified")
	b.wantEvents(rejected, "pending", "rejected expired")
	if n := backendtest.Count(t, b.pool, `SELECT count(*) FROM outbox_events`); n != 4 {
		t.Errorf("%d events, want 4", n)
	}
}

// TestNoChangeWithoutItsEvent takes the outbox away: a licence that nobody could be told of is not changed.
func TestNoChangeWithoutItsEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	license := b.upload()
	testdb.Exec(t, b.pool, `ALTER TABLE outbox_events RENAME TO away`)
	if _, err := b.calls.Approve(t.Context(), nil, license); err == nil {
		t.Error("approved without an event")
	}
	lost := uuid.New()
	if _, _, err := b.calls.Upload(t.Context(), nil, b.store, lost, "1"); err == nil {
		t.Error("uploaded without an event")
	}
	if _, err := b.calls.License(t.Context(), lost); !errors.Is(err, licensing.ErrNotFound) {
		t.Errorf("the licence without an event: %v, want %v", err, licensing.ErrNotFound)
	}
	if now, err := b.calls.License(t.Context(), license); err != nil || now.Status != payloads.LicensePending {
		t.Errorf("%+v, %v; want it pending", now, err)
	}
}

// TestUploadsAtOnce sends one upload many times at once: one licence, told once.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := uuid.New()
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			license, created, err := b.calls.Upload(t.Context(), nil, b.store, id, "C11-0000123")
			if err != nil || license.ID != id {
				t.Errorf("%+v, %v", license, err)
			}
			if created {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("%d say that they have uploaded it", n)
	}
	b.wantEvents(id, "pending")
}

// TestDecisionsAtOnce has many decide on one licence: one decision stands, and is told once.
func TestDecisionsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	license := b.upload()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = b.calls.Approve(t.Context(), nil, license)
			} else {
				_, err = b.calls.Reject(t.Context(), nil, license, "expired")
			}
			if err != nil && !errors.Is(err, licensing.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	now, err := b.calls.License(t.Context(), license)
	if err != nil {
		t.Fatal(err)
	}
	b.wantEvents(license, "pending", strings.TrimSpace(string(now.Status)+" "+now.Reason))
}
