package outagetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	events      = 2000
	keys        = 300
	otherEvery  = 10 // every so many events go to the other topic
	emitAtOnce  = 100
	firstPart   = 500 // delivered before the fault begins
	backlog     = 200 // kept up until it has begun
	slowPart    = 200 // delivered by a slow destination before it is well again
	batchSize   = 50
	maxAttempts = 3
	looks       = 2 // pings or trials that fail before the destination is back
	// patience limits every wait for something that must happen. It is not a measure of speed.
	patience = 80 * time.Second
	// publishTimeout is short, so that a destination that hangs is noticed soon.
	publishTimeout = 5 * time.Second

	// In the long form.
	longOutage   = 5 * time.Minute
	longBeat     = time.Second // emitAtOnce events arrive each
	longRecovery = 5 * time.Second
	longPatience = 10 * time.Minute
)

func isLong() bool { return os.Getenv("OUTBOX_CHAOS") == "long" }

// bed is a stream, a relay and a destination.
type bed struct {
	testing.TB
	Destination
	*watch
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	emitted []uuid.UUID
	other   []uuid.UUID // those of the other topic
	relay   *outbox.Relay
	log     *logtest.Log
}

func newBed(t *testing.T, d Destination) *bed {
	t.Helper()
	if d.Topic == "" {
		d.Topic = publishertest.Topic
	}
	b := &bed{TB: t, Destination: d, watch: newWatch(), pool: pgtest.Pool(t), log: &logtest.Log{}}
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, b.pool, "", files)
	if b.emitter, err = outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	store, err := pgstream.Open(t.Context(), b.pool, pgstream.Stream{}, pgstream.Config{MaxAttempts: maxAttempts, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	config := outbox.RelayConfig{
		Store: store, Publisher: b.watched(d.Publisher(t)), BatchSize: batchSize, Poll: 50 * time.Millisecond,
		// Whatever is counted is soon dead.
		Retry: outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		Hooks: []any{b.watch}, Logger: logger, PublishTimeout: publishTimeout,
	}
	if isLong() { // as it is in production
		config.PublishTimeout, config.BatchSize = 0, 0
	}
	if b.relay, err = outbox.NewRelay(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the relay's log:\n%s", b.log.Text())
		}
	})
	return b
}

// run has a fault happen and checks what became of the events.
func (b *bed) run(fault Fault) {
	b.Helper()
	b.emit(firstPart + backlog)
	if err := b.relay.Start(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { outboxtest.Stop(b, b.relay) })
	b.awaitDelivered(firstPart)
	b.begin(fault)
	b.emit(max(events-len(b.emitted), backlog))
	switch {
	case fault.Slow:
		b.mu.Lock()
		slow := min(len(b.delivered)+slowPart, len(b.emitted))
		b.mu.Unlock()
		b.awaitDelivered(slow)
	default:
		b.awaitOutage(fault)
	}
	b.last()
	fault.End(b)
	b.note(func() { b.mark = time.Now() })
	ended := b.mark
	b.awaitDelivered(len(b.emitted))
	outboxtest.Stop(b, b.relay)
	b.check()
	b.mu.Lock()
	defer b.mu.Unlock()
	if took := b.firstAfter.Sub(ended); isLong() && took > longRecovery {
		b.Errorf("the first message was published %s after the outage, want at most %s", took, longRecovery)
	}
}

// begin begins a fault while batches are under way: there are events to send at every moment until it has begun.
func (b *bed) begin(fault Fault) {
	b.Helper()
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		fault.Begin(b)
	}()
	for {
		b.mu.Lock()
		waiting, changed := len(b.emitted)-len(b.delivered), b.changed
		b.mu.Unlock()
		if waiting < backlog {
			b.emit(emitAtOnce)
			continue
		}
		select {
		case <-begun:
			if b.Failed() {
				b.FailNow()
			}
			return
		case <-changed:
		}
	}
}

// awaitOutage waits until the relay has noticed, and has looked again in vain.
func (b *bed) awaitOutage(fault Fault) {
	b.Helper()
	b.await(b, "the relay to notice", func() bool {
		if fault.Topic && len(b.closed) > 0 && b.closed[0].Topic != b.Topic {
			b.Errorf("closed is %q, want the topic %s", b.closed[0].Topic, b.Topic)
		}
		return len(b.closed) > 0
	})
	b.await(b, "the relay to look again", func() bool { return b.looks >= looks })
	if fault.Topic {
		b.await(b, "the other topic's events", func() bool {
			for _, id := range b.other {
				if !b.delivered[id] {
					return false
				}
			}
			return len(b.other) > 0
		})
	}
}

// last has the outage last: in the long form, while events arrive.
func (b *bed) last() {
	b.Helper()
	if !isLong() {
		return
	}
	for end := time.Now().Add(longOutage); time.Now().Before(end); {
		b.emit(emitAtOnce)
		time.Sleep(longBeat)
	}
}

func (b *bed) awaitDelivered(n int) {
	b.Helper()
	b.await(b, fmt.Sprintf("%d delivered events", n), func() bool { return len(b.delivered) >= n })
}

// emit writes so many events in a transaction of their own.
func (b *bed) emit(n int) {
	b.Helper()
	list := make([]outbox.Event, n)
	for i := range list {
		k := len(b.emitted) + i
		list[i] = outbox.Event{Topic: b.Topic, Type: "order_placed", Key: fmt.Sprintf("order/%d", k%keys), Payload: fmt.Appendf(nil, `{"order": %d}`, k)}
		if b.OtherTopic != "" && k%otherEvery == 0 {
			list[i].Topic = b.OtherTopic
		}
	}
	err := b.emitter.InTx(b.Context(), b.pool, func(tx pgx.Tx) error {
		emitted, err := b.emitter.EmitMany(b.Context(), tx, list)
		for i := range emitted {
			b.emitted = append(b.emitted, emitted[i].ID)
			if list[i].Topic != b.Topic {
				b.other = append(b.other, emitted[i].ID)
			}
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// check sees that nothing was counted, lost, or sent twice without a doubt.
func (b *bed) check() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.counted) > 0 {
		b.Errorf("counted: %v", b.counted)
	}
	b.checkParked()
	arrived := make(map[uuid.UUID]int)
	for _, id := range b.Received(b) {
		arrived[id]++
	}
	lost, twice := 0, 0
	for _, id := range b.emitted {
		switch n := arrived[id]; {
		case n == 0:
			lost++
		case n > 1+b.doubts[id]:
			twice++
		}
		delete(arrived, id)
	}
	if lost+twice+len(arrived) > 0 {
		b.Errorf("of %d events %d are lost, %d came twice without a doubt, and %d came that nobody emitted", len(b.emitted), lost, twice, len(arrived))
	}
	b.Logf("%d events; %d were in doubt; closed %d times, first: %v", len(b.emitted), len(b.doubts), len(b.closed), b.closed[:min(1, len(b.closed))])
}

// checkParked sees that no event is left beside the stream, dead or not.
func (b *bed) checkParked() {
	b.Helper()
	rows, err := b.pool.Query(b.Context(), `SELECT state || ', ' || attempts || ' attempts: ' || coalesce(last_error, '') FROM outbox_parked`)
	if err != nil {
		b.Fatal(err)
	}
	parked, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.Fatal(err)
	}
	if len(parked) > 0 {
		b.Errorf("%d events are parked, the first: %s", len(parked), parked[0])
	}
}
