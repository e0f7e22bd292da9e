package compliance_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

// TestFailureReleasesTheKey has a database that cannot take the notification: the event is given back at once, and the next
// delivery handles it. It is no fault of the event, however it fails.
func TestFailureReleasesTheKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct{ spoil, mend string }{
		"no table": {`ALTER TABLE notifications RENAME TO away`, `ALTER TABLE away RENAME TO notifications`},
		"a column of somebody else": {
			`ALTER TABLE notifications ADD campaign text; ALTER TABLE notifications ALTER campaign SET NOT NULL`,
			`ALTER TABLE notifications DROP campaign`,
		},
		"a check of somebody else": {
			`ALTER TABLE notifications ADD CONSTRAINT short CHECK (length(message) < 3)`, `ALTER TABLE notifications DROP CONSTRAINT short`,
		},
		"a status that is too short": {
			`ALTER TABLE notifications ALTER status TYPE varchar(3) USING status::text`,
			`ALTER TABLE notifications ALTER status TYPE license_status_enum USING status::license_status_enum`,
		},
		"a full disk": {
			`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER full_disk BEFORE INSERT ON notifications FOR EACH ROW EXECUTE FUNCTION full_disk()`,
			`DROP TRIGGER full_disk ON notifications`,
		},
	} {
		message := backendtest.Pending(t)
		testdb.Exec(t, b.pool, `TRUNCATE notifications; `+c.spoil) // rows of before would be in its way
		wantDown(t, b.deliver(message))
		if mark := b.mark(message.ID); mark != "" {
			t.Errorf("%s: the failure has left the mark %q", name, mark)
		}
		if b.handler.Check() == nil {
			t.Errorf("%s: the handler says that it can work", name)
		}
		testdb.Exec(t, b.pool, c.mend)
		b.handled(message)
		b.wantOne(message.ID)
		if err := b.handler.Check(); err != nil {
			t.Errorf("%s: after a success: %v", name, err)
		}
	}
}

// TestConnectionLost ends the session in the middle of its INSERT.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gate := backendtest.NewGate(t, b.pool, "notifications", "INSERT")
	message, delivered := backendtest.Pending(t), make(chan error, 1)
	gate.Close()
	go func() { delivered <- b.deliver(message) }()
	gate.AwaitStanding("")
	testdb.Exec(t, b.pool, `SELECT pg_terminate_backend(pid) FROM pg_locks
		WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	wantDown(t, <-delivered)
	if mark := b.mark(message.ID); mark != "" {
		t.Errorf("the failure has left the mark %q", mark)
	}
	gate.Open()
	b.handled(message)
	b.wantOne(message.ID)
}

// TestRedisAway takes Redis away: an error and no effect, never a silent skip. What it remembers, it remembers.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before, after := backendtest.Pending(t), backendtest.Pending(t)
	b.handled(before)
	b.redis.Stop(t)
	wantDown(t, b.deliver(before))
	wantDown(t, b.deliver(after))
	if list := b.notifications(after.ID); len(list) > 0 {
		t.Errorf("handled without a claim: %+v", list)
	}
	b.redis.Start(t)
	for range 2 {
		b.handled(before)
		b.handled(after)
	}
	b.wantOne(before.ID)
	b.wantOne(after.ID)
}

// TestRedisForgets empties Redis: the event is handled again, and the unique key keeps it from having a second
// notification.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	message := backendtest.Pending(t)
	for range 2 {
		b.handled(message)
		if err := b.redis.Client().FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.wantOne(message.ID)
}

// TestNotMarked gives the event to another while its notification is being written, so that it cannot be marked. It is
// acknowledged all the same: the notification is there, and stays one.
func TestNotMarked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gate := backendtest.NewGate(t, b.pool, "notifications", "INSERT")
	message, delivered := backendtest.Pending(t), make(chan error, 1)
	gate.Close()
	go func() { delivered <- b.deliver(message) }()
	gate.AwaitStanding("")
	if err := b.redis.Client().Set(t.Context(), key(message.ID), "processing:another", 0).Err(); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	if err := <-delivered; err != nil {
		t.Errorf("%v, want it to be acknowledged", err)
	}
	b.wantOne(message.ID)
	if mark := b.mark(message.ID); !strings.HasSuffix(mark, "another") {
		t.Errorf("the other's claim has become %q", mark)
	}
}
