package main

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

// TestWorkerRole runs the worker under a role that has the rights of migrations/roles/worker.sql. They are enough, and it can
// neither read nor write the outbox, nor do anything to a notification but write it.
func TestWorkerRole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	running := b.start(nil)
	message := backendtest.Pending(t)
	b.send(message, message) // what the publisher sends twice
	b.awaitNotified(message.ID)
	running.Stop()

	role := testdb.Connect(t, b.url)
	for _, sql := range []string{
		`SELECT 1 FROM outbox_events`, `SELECT 1 FROM outbox_dlq`, `DELETE FROM outbox_events`, `UPDATE outbox_events SET published_at = now()`,
		`INSERT INTO outbox_events SELECT`, `SELECT message FROM notifications`, `UPDATE notifications SET reason = ''`,
		`DELETE FROM notifications`, `SELECT 1 FROM stores`, `SELECT 1 FROM licenses`,
	} {
		_, err := role.Exec(t.Context(), sql)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != insufficientPrivilege {
			t.Errorf("%s: %v, want it to be refused", sql, err)
		}
	}
}

const insufficientPrivilege = "42501"

// TestOthersAreAcknowledged has an event of another type on the subscription: it does not come again.
func TestOthersAreAcknowledged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(nil)
	other := backendtest.Pending(t)
	other.Type = "order_created"
	b.send(other)
	b.awaitAcked(other.ID)
	if n := backendtest.Count(t, b.pool, `SELECT count(*) FROM notifications`); n != 0 {
		t.Errorf("%d notifications, want none", n)
	}
}

// TestOutageMakesNoDeadLetters takes the table away for many deliveries. The event is not acknowledged, is no dead letter, and is
// handled when the table is back.
func TestOutageMakesNoDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.impatient()
	b.start(map[string]string{"PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC": letterTopic})
	first, message := backendtest.Pending(t), backendtest.Pending(t)
	b.send(first)
	b.awaitNotified(first.ID) // it has started; on a database without the table it would not
	testdb.Exec(t, b.pool, `ALTER TABLE notifications RENAME TO away`)
	b.send(message)
	await.Until(t, "many deliveries", func() bool { return b.message(message.ID).Deliveries > 5*consume.DefaultMaxDeliveries })
	if m := b.message(message.ID); m.Acks > 0 {
		t.Error("a failure was acknowledged")
	}
	testdb.Exec(t, b.pool, `ALTER TABLE away RENAME TO notifications`)
	b.awaitNotified(message.ID)
	if letters := b.letters(); len(letters) > 0 {
		t.Errorf("%d dead letters", len(letters))
	}
}

// TestDeadLetters has an event that can never be handled. It goes to the dead-letter topic as it was, with the reason, and holds
// up nothing.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(map[string]string{"PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC": letterTopic})
	bad, good := backendtest.Pending(t), backendtest.Pending(t)
	bad.Payload = bytes.Replace(bad.Payload, []byte("pending"), []byte("lapsed"), 1)
	b.send(bad, good)
	b.awaitNotified(good.ID)
	b.awaitAcked(bad.ID)
	letters := b.letters()
	if len(letters) != 1 {
		t.Fatalf("%d dead letters, want 1", len(letters))
	}
	letter := letters[0]
	if !bytes.Equal(letter.Data, bad.Payload) || letter.Attributes["event_id"] != bad.ID.String() ||
		letter.Attributes[consume.DeadReason] != "invalid_payload" || letter.Attributes[consume.DeadError] == "" {
		t.Errorf("the dead letter is %s, %v", letter.Data, letter.Attributes)
	}
}

// TestNoDeadLetterTopic has Pub/Sub without the topic, by default and by another name: the worker does not start, and says how to make one.
func TestNoDeadLetterTopic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.deleteTopic(letterTopic)
	for topic, set := range map[string]string{letterTopic: "", "elsewhere": "elsewhere"} {
		err := b.refusal(map[string]string{"PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC": set})
		if program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "gcloud pubsub topics create "+topic+" --project "+pubsubtest.Project) {
			t.Errorf("without %s: %v, want it to be said how to make it", topic, err)
		}
	}
}

// TestPoisonDoesNotStopItsKey has events of one licence, the first of which can never be handled: one whose envelope is that of
// another event, and one that breaks the rules. Both go to the dead letters with their reason, and the next of the key is handled.
func TestPoisonDoesNotStopItsKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(nil)
	foreign, broken, good := backendtest.Pending(t), backendtest.Pending(t), backendtest.Pending(t)
	foreign.Payload = bytes.Replace(foreign.Payload, []byte(foreign.ID.String()), []byte(uuid.NewString()), 1)
	broken.Payload = bytes.Replace(broken.Payload, []byte(`"storeId"`), []byte(`"STOREID"`), 1)
	for _, m := range []*outbox.Message{&foreign, &broken, &good} {
		m.Key = "license/one"
	}
	b.send(foreign, broken, good)
	b.awaitNotified(good.ID)
	b.awaitAcked(foreign.ID, broken.ID)
	reasons := make(map[string]string)
	for _, letter := range b.letters() {
		reasons[letter.Attributes["event_id"]] = letter.Attributes[consume.DeadReason]
	}
	want := map[string]string{foreign.ID.String(): "invalid_payload", broken.ID.String(): "invalid_payload"}
	if !maps.Equal(reasons, want) {
		t.Errorf("the dead letters are %v, want %v", reasons, want)
	}
}

// TestStopFinishesWhatItHasBegun stops the worker in the middle of a notification: it is written and acknowledged, not left to come
// again.
func TestStopFinishesWhatItHasBegun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gate := backendtest.NewGate(t, b.pool, "notifications", "INSERT")
	gate.Close()
	running := b.start(nil)
	message := backendtest.Pending(t)
	b.send(message)
	gate.AwaitStanding("")
	running.Cancel()
	gate.Open()
	running.Stop()
	b.awaitNotified(message.ID)
	if m := b.message(message.ID); m.Deliveries != 1 {
		t.Errorf("it was delivered %d times", m.Deliveries)
	}
}

// letters are the dead letters.
func (b *bench) letters() (list []*pstest.Message) {
	for _, m := range b.broker.Server.Messages() {
		if path.Base(m.Topic) == letterTopic {
			list = append(list, m)
		}
	}
	return list
}

// TestMetrics has an event handled and one given up: the numbers say so, and those that did not happen are there with nothing.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address})
	bad, good := backendtest.Pending(t), backendtest.Pending(t)
	bad.Payload = []byte("null")
	b.send(bad, good)
	b.awaitNotified(good.ID)
	b.awaitAcked(bad.ID)
	backendtest.AwaitMetrics(t, address,
		`packfinderz_worker_deliveries_total{outcome="handled"} 1`, `packfinderz_worker_deliveries_total{outcome="again"} 0`,
		`packfinderz_worker_deliveries_total{outcome="dead_letter"} 1`, `packfinderz_worker_redelivered_total 0`,
		`packfinderz_worker_dead_letters_total{reason="invalid_payload"} 1`, `packfinderz_worker_dead_letters_total{reason="max_deliveries"} 0`,
		`packfinderz_worker_handle_seconds_count 2`, `packfinderz_worker_handle_seconds_bucket{le="+Inf"} 2`,
	)
}
