package pgstream

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
)

// TestFaultsOfKeys are mistakes that let events of a key overtake each other, or leave them.
func TestFaultsOfKeys(t *testing.T) {
	t.Parallel()
	testFaults(t,
		fault{name: "several events of a key under way, each with its own result", shows: inverted, script: scriptIndependent},
		fault{
			name: "the keys that wait are not read when a shard is taken over", shows: inverted,
			put:    func(s *stage, sql *statements) { s.swap(&sql.gated, "AND gates", "AND false") },
			script: scriptParkedByAnother,
		},
		fault{
			name: "only failed events are tried again, not those that waited behind them", shows: lost,
			put:    func(s *stage, sql *statements) { s.swap(&sql.promote, "f.state = 'waiting'", "false") },
			script: scriptWaiting,
		},
	)
}

// flaky is a publisher that sends all it is given at once, and refuses the first message once.
type flaky struct {
	s *stage
	// boasts makes it say, wrongly, that it keeps the order of keys.
	boasts  bool
	refused bool
}

func (f *flaky) KeepsOrder() bool { return f.boasts }

func (f *flaky) Publish(_ context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i, message := range messages {
		if !f.refused {
			f.refused = true
			errs[i] = errors.New("not now")
			continue
		}
		f.s.published = append(f.s.published, message.ID)
	}
	return errs
}

// scriptIndependent has the first of two events of a key refused once.
func scriptIndependent(s *stage) {
	s.emit("a", "a")
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: s.open(Config{}), Publisher: &flaky{s: s, boasts: s.faulty},
		Retry:  outbox.RetryPolicy{Base: time.Millisecond, Max: time.Millisecond},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	if err := relay.Drain(ctx); err != nil {
		s.Fatal(err)
	}
}

// scriptParkedByAnother has the first event of a key fail at one relay, and the second come
// to the next.
func scriptParkedByAnother(s *stage) {
	s.emit("a")
	s.settle(s.claim(s.open(Config{}), 1), failedFor(time.Hour))
	s.emit("a")
	store := s.takeOver()
	s.drain(store)
	s.ripen()
	s.drainParked(store)
}

// scriptWaiting has an event fail and then arrive; the one behind it has waited.
func scriptWaiting(s *stage) {
	store := s.open(Config{})
	s.emit("a")
	s.settle(s.claim(store, 1), failedFor(time.Hour))
	s.emit("a")
	s.drain(store)
	s.ripen()
	s.drainParked(store)
}

// TestDueWhileLooking has an event become due while the parked events are read: it is not forgotten until the look that comes
// every ten seconds in any case.
func TestDueWhileLooking(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("a")
	s.settle(s.claimAll(store, 1), failedFor(300*time.Millisecond))
	// The statement's time is that of its beginning.
	s.swap(&store.sql.due, "FROM unnest($2::smallint[]) AS u(shard)", "FROM (SELECT shard, pg_sleep(0.6) FROM unnest($2::smallint[]) AS shard) AS u")
	store.PassTime()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Abandon()
	store.mu.Lock()
	next := time.Until(store.lookAt)
	store.mu.Unlock()
	if len(batch.Messages()) == 0 && next > lookEvery/2 {
		t.Errorf("nothing is claimed, and the next look is in %s", next)
	}
}
