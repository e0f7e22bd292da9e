//go:build unix

package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/pgstream"
)

// program builds the program, once for all that a test does with it.
func program(t *testing.T) string {
	t.Helper()
	return process.Build(t)
}

// run is a stream, the program and a broker.
type run struct {
	*testing.T
	program, url, folder string
	pool                 *pgxpool.Pool
	emitter              *outboxpgx.Emitter
	broker               publishertest.Broker
	emitted              map[uuid.UUID]*event
	peak                 int64 // the most memory that a relay had, in bytes
}

func newRun(t *testing.T, program string, broker publishertest.Broker) *run {
	t.Helper()
	url := pgtest.URL(t)
	r := &run{
		T: t, program: program, url: url, folder: t.TempDir(), pool: pgtest.Connect(t, url), broker: broker,
		emitted: make(map[uuid.UUID]*event),
	}
	process.Start(t, filepath.Join(r.folder, "migrate.log"), nil, program, "migrate", "up", "--from", url).MustSucceed(t)
	var err error
	if r.emitter, err = outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// emit commits n events, in transactions of a hundred.
func (r *run) emit(n int) error {
	const step = 100
	for range n / step {
		events := make([]outbox.Event, step)
		for i := range events {
			events[i] = newEvent(len(r.emitted) + i)
		}
		var done []outbox.Emitted
		var created time.Time
		err := r.emitter.InTx(r.Context(), r.pool, func(tx pgx.Tx) (err error) {
			if done, err = r.emitter.EmitMany(r.Context(), tx, events); err != nil {
				return err
			}
			return tx.QueryRow(r.Context(), "SELECT now()").Scan(&created)
		})
		if err != nil {
			return err
		}
		for i := range events {
			e := &event{Event: events[i], number: len(r.emitted), created: created}
			e.ID, e.Key = done[i].ID, e.AggregateType+"/"+e.AggregateID
			r.emitted[e.ID] = e
		}
	}
	return nil
}

// relay starts a relay.
func (r *run) relay() *process.Process {
	r.Helper()
	return process.Start(r.T, filepath.Join(r.folder, "relay.log"), nil, r.program,
		"relay", "--from", r.url, "--to", r.broker.URL(), "--poll", "100ms")
}

// stop ends a relay as an operator does.
func (r *run) stop(relay *process.Process) {
	r.Helper()
	r.measure(relay)
	relay.Signal(r.T, syscall.SIGTERM)
	relay.MustSucceed(r.T)
	if lag := r.lag(); lag.Parked["dead"]+lag.Parked["retry"]+lag.Parked["waiting"] > 0 {
		r.Errorf("events were parked: %v\n%s", lag.Parked, relay.Tail())
	}
}

func (r *run) lag() *pgstream.Lag {
	r.Helper()
	lag, err := pgstream.Stream{}.Lag(r.Context(), r.pool, "default")
	if err != nil {
		r.Fatal(err)
	}
	return lag
}

// delivered is how many events are settled.
func (r *run) delivered() (n int64) {
	r.Helper()
	if err := r.pool.QueryRow(r.Context(), "SELECT count(*) FROM outbox_stream").Scan(&n); err != nil {
		r.Fatal(err)
	}
	// The lag afterwards: what is emitted in between is not counted as delivered.
	lag := r.lag()
	for _, shard := range lag.Shards {
		n -= shard.Events
	}
	return n - lag.Parked["retry"] - lag.Parked["waiting"]
}

// awaitDelivered waits until so many events are settled.
func (r *run) awaitDelivered(relay *process.Process, n int64) {
	r.Helper()
	r.await(relay, fmt.Sprintf("%d events to be settled", n), func() bool { return r.delivered() >= n })
}

func (r *run) await(relay *process.Process, what string, holds func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), process.Patience)
	defer cancel()
	if err := await.Poll(ctx, func() bool { return relay.Ended() || holds() }); err != nil {
		r.Fatalf("waited in vain for %s; there are %d\n%s", what, r.delivered(), relay.Tail())
	}
	if relay.Ended() {
		r.Fatalf("the relay ended: %v\n%s", relay.Err(), relay.Tail())
	}
}

// watch measures a relay's memory for a time: that is how long it may pile up what the broker
// does not take.
func (r *run) watch(relay *process.Process, d time.Duration) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	err := await.Poll(ctx, func() bool {
		r.measure(relay)
		return relay.Ended()
	})
	if err == nil {
		r.Fatalf("the relay ended: %v\n%s", relay.Err(), relay.Tail())
	}
}

// measure notes the most memory that the relay's process has had. Linux tells.
func (r *run) measure(relay *process.Process) {
	r.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", relay.PID()))
	if err != nil {
		return // another system
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	if err != nil {
		r.Fatal(err)
	}
	r.peak = max(r.peak, kib<<10)
}
