package compliance_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// TestNotices has every status: admins are told of what waits for them, the store of what was decided.
func TestNotices(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	store, license := uuid.New(), uuid.New()
	for _, c := range []struct {
		status                    payloads.LicenseStatus
		reason, audience, message string
	}{
		{payloads.LicensePending, "", "admin", "A licence was uploaded and waits for review."},
		{payloads.LicenseVerified, "", "store", "Your licence was verified."},
		{payloads.LicenseRejected, "it is unreadable", "store", "Your licence was rejected: it is unreadable"},
		{payloads.LicenseRejected, "", "store", "Your licence was rejected."},
	} {
		message := backendtest.Event(t, payloads.LicenseStatusChanged{LicenseID: license, StoreID: store, Status: c.status, Reason: c.reason})
		b.handled(message)
		want := notification{"compliance", c.audience, store, license, c.status, c.reason, c.message}
		if list := b.notifications(message.ID); len(list) != 1 || list[0] != want {
			t.Errorf("%s: %+v, want %+v", c.status, list, want)
		}
	}
}

// TestDuplicatesDoNotRunTheEffectAgain delivers one event to two processes, many times at once, and again: one notification,
// which was tried once, and a mark in Redis that lasts for the TTL.
func TestDuplicatesDoNotRunTheEffectAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// The unique key would hide what is tried in vain; a trigger sees it.
	testdb.Exec(t, b.pool, `CREATE SEQUENCE tries`)
	testdb.Exec(t, b.pool, `CREATE FUNCTION try() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM nextval('tries'); RETURN NEW; END $$`)
	testdb.Exec(t, b.pool, `CREATE TRIGGER try BEFORE INSERT ON notifications FOR EACH ROW EXECUTE FUNCTION try()`)
	message := backendtest.Pending(t)
	var wg sync.WaitGroup
	for _, process := range []outbox.Publisher{b.handler, b.another()} {
		for range 16 {
			wg.Go(func() {
				await.Check(t, "nobody else to be at the event", func() bool {
					err := process.Publish(t.Context(), []outbox.Message{message})[0]
					elsewhere := errors.Is(err, inbox.ErrInProgress)
					if err != nil && !elsewhere {
						t.Error(err)
					}
					return !elsewhere
				})
			})
		}
	}
	wg.Wait()
	b.handled(message)
	b.wantOne(message.ID)
	if tries := backendtest.Count(t, b.pool, `SELECT last_value FROM tries`); tries != 1 {
		t.Errorf("the notification was tried %d times", tries)
	}
	if mark := b.mark(message.ID); !strings.HasPrefix(mark, "done:") {
		t.Errorf("Redis has %q", mark)
	}
	if left := b.redis.Client().TTL(t.Context(), key(message.ID)).Val(); left > 720*time.Hour || left < 719*time.Hour {
		t.Errorf("the mark ends in %s, want 720h", left)
	}
}

// TestOthersAreIgnored has events that are for other consumers, known and unknown, good and bad.
func TestOthersAreIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, kind := range []string{"order_created", "invented_yesterday", ""} {
		message := backendtest.Pending(t)
		message.Type, message.Payload = kind, []byte("null")
		b.handled(message)
		if mark := b.mark(message.ID); mark != "" {
			t.Errorf("%q has the mark %q", kind, mark)
		}
	}
	if n := backendtest.Count(t, b.pool, `SELECT count(*) FROM notifications`); n != 0 {
		t.Errorf("%d notifications, want none", n)
	}
}

// TestInvalidEventsAreTerminal has events that no delivery can mend: no notification, and no mark.
func TestInvalidEventsAreTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	swap := func(old, by string) func([]byte) []byte {
		return func(payload []byte) []byte { return bytes.Replace(payload, []byte(old), []byte(by), 1) }
	}
	for name, spoil := range map[string]func([]byte) []byte{
		"null":                   func([]byte) []byte { return []byte("null") },
		"no JSON":                func([]byte) []byte { return []byte("{") },
		"another version":        swap(`"version":1`, `"version":2`),
		"another event":          swap(`"eventId":"`, `"eventId":"0`),
		"another status":         swap(`"pending"`, `"expired"`),
		"a reason of a bad type": swap(`"pending"`, `"pending","reason":7`),
		"a reason with a NUL":    swap(`"pending"`, `"rejected","reason":"a\u0000b"`),
	} {
		message := backendtest.Pending(t)
		message.Payload = spoil(message.Payload)
		err := b.deliver(message)
		if err == nil || outbox.Classify(err) != outbox.ClassTerminal {
			t.Errorf("%s: %v, which is not terminal", name, err)
		}
		if list, mark := b.notifications(message.ID), b.mark(message.ID); len(list) > 0 || mark != "" {
			t.Errorf("%s: %+v and the mark %q", name, list, mark)
		}
	}
}
