package modkit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	crowdEvents = 150 // in transactions of a few
	crowdSteps  = 60  // of each worker
)

// TestStatesConcurrently runs workers, a dispatcher, a producer and a person on one table at once, with leases that
// end by themselves. Whatever they do, in whatever order, the database records no change that the machine does not
// allow.
func TestStatesConcurrently(t *testing.T) {
	t.Parallel()
	c := &crowd{states: newStates(t), refused: make(map[string]int)}
	c.machine = machine{lease: 150 * time.Millisecond, maxAttempts: 3, retry: outbox.RetryPolicy{Base: time.Millisecond, Max: 3 * time.Millisecond}}
	c.last = make(map[uuid.UUID]snapshot)

	// On a busy machine a round may be over before everything has happened.
	for c.rounds < 20 && (c.rounds == 0 || len(c.missing()) > 0) {
		c.round()
		for _, name := range c.check(t) {
			c.met[name]++
		}
	}
	t.Logf("met %v; refused after the lease was lost: %v; %d rounds", c.met, c.refused, c.rounds)
	for _, name := range c.missing() {
		t.Errorf("nobody met this: %s", name)
	}
	if len(c.last) != c.rounds*crowdEvents {
		t.Errorf("%d rows, want %d", len(c.last), c.rounds*crowdEvents)
	}
	for id, row := range c.last {
		if row.status != delivered && row.status != dead {
			t.Errorf("%s is left %s", id, row.status)
		}
	}
}

// crowd is everybody at the table. Its methods run concurrently, so they report with Error.
type crowd struct {
	*states
	rounds  int
	mu      sync.Mutex
	refused map[string]int
}

// round lets everybody work, and then delivers what is left.
func (c *crowd) round() {
	c.Helper()
	dispatcher := c.dispatcherAs(uuid.New(), c.publish)
	if err := dispatcher.Start(c.Context()); err != nil {
		c.Fatal(err)
	}
	ctx, enough := context.WithCancel(c.Context())
	var working, retrying sync.WaitGroup
	retrying.Go(func() { c.retryDead(ctx) })
	working.Go(c.produce)
	for i := range statesWorkers {
		working.Go(func() { c.work(i) })
	}
	working.Wait()
	enough()
	retrying.Wait()
	outboxtest.Stop(c, dispatcher)
	last := c.dispatcherAs(uuid.New(), func(context.Context, modkit.ClaimedMessage) error { return nil })
	if err := last.Drain(c.Context()); err != nil {
		c.Fatal(err)
	}
	c.rounds++
}

// missing returns the transitions not seen yet.
func (c *crowd) missing() (names []string) {
	for _, name := range []string{"claim", "reclaim", "renew", "ack", "nack", "last nack", "terminal", "release", "retry by hand"} {
		if c.met[name] == 0 {
			names = append(names, name)
		}
	}
	if len(c.refused) == 0 {
		names = append(names, "a lost lease")
	}
	return names
}

func (c *crowd) dispatcherAs(worker uuid.UUID, publish modkit.Handler) *outbox.Relay {
	c.Helper()
	module, err := modkit.NewModule(c.as(worker.String()), c.config(worker))
	if err != nil {
		c.Fatal(err)
	}
	relay, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{
		Otherwise: publish, OffPool: true, PollInterval: 20 * time.Millisecond, PublishTimeout: 30 * time.Second,
		Claim: modkit.ClaimCfg{BatchSize: 5}, Logger: c.logger(),
	})
	if err != nil {
		c.Fatal(err)
	}
	return relay
}

// publish returns every kind of answer, sometimes only after its lease was renewed.
func (c *crowd) publish(ctx context.Context, m modkit.ClaimedMessage) error {
	switch rand.IntN(10) {
	case 0, 1, 2:
		return errors.New("no")
	case 3:
		return outbox.Terminal(errors.New("never"))
	case 4:
		first := c.leaseOf(ctx, m.ID)
		// A lost lease ends ctx, too; a lease that is neither lost nor renewed is a fault.
		err := await.Poll(ctx, func() bool { return c.leaseOf(ctx, m.ID) != first })
		if errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("the lease of %s was not renewed while it was published", m.ID)
		}
	}
	return nil
}

// leaseOf returns when a row's lease ends, as text.
func (c *crowd) leaseOf(ctx context.Context, id uuid.UUID) (until string) {
	err := c.pool.QueryRow(ctx, `SELECT coalesce(locked_until::text, '') FROM modkit_outbox_events WHERE id = $1`, id).Scan(&until)
	if err != nil && ctx.Err() == nil {
		c.Error(err)
	}
	return until
}

func (c *crowd) produce() {
	for n := 0; n < crowdEvents; {
		events := make([]outbox.Event, min(1+rand.IntN(5), crowdEvents-n))
		for i := range events {
			events[i] = outbox.Event{Namespace: "mini-chat", Topic: "usage", DedupeKey: fmt.Sprintf("%d/%d", c.rounds, n+i), Payload: []byte(`{}`)}
		}
		err := pgx.BeginFunc(c.Context(), c.hands[producer], func(tx pgx.Tx) error {
			_, err := c.emitter.EmitMany(c.Context(), tx, events)
			return err
		})
		if err != nil {
			c.Error(err)
			return
		}
		n += len(events)
	}
}

// retryDead retries the first few that are dead.
func (c *crowd) retryDead(ctx context.Context) {
	pool := c.hands[person]
	store, err := pgstore.New(pool, modkit.Layout(), pgstore.Config{})
	if err != nil {
		c.Error(err)
		return
	}
	retried := 0
	// The round may end first; a run in which nobody retried fails as a whole.
	_ = await.Poll(ctx, func() bool {
		var ids, list []uuid.UUID
		err := pool.QueryRow(ctx, `SELECT coalesce(array_agg(id), '{}') FROM modkit_outbox_events WHERE status = 'dead'`).Scan(&ids)
		if err == nil {
			list, err = store.Retry(ctx, ids...)
		}
		if err != nil && ctx.Err() == nil {
			c.Error(err)
		}
		retried += len(list)
		return retried >= 5
	})
}

// work is one worker: it claims, settles, forgets, and pauses until its leases are over.
func (c *crowd) work(worker int) {
	module, err := modkit.NewModule(c.pools[worker], c.config(c.names[worker]))
	if err != nil {
		c.Error(err)
		return
	}
	var holding []modkit.ClaimedMessage
	for range crowdSteps {
		if len(holding) == 0 || rand.IntN(4) == 0 {
			messages, err := module.ClaimBatch(c.Context(), modkit.ClaimCfg{BatchSize: 1 + rand.IntN(4)})
			if err != nil {
				c.Error(err)
			}
			holding = append(holding, messages...)
			continue
		}
		switch rand.IntN(8) {
		case 0: // a crash: the same worker comes back without memory
			holding = nil
		case 1:
			c.standStill(c.pools[worker], c.names[worker], holding)
		}
		for i := range min(len(holding), 1+rand.IntN(3)) {
			c.settleOne(module, holding[i])
		}
		// Some are settled twice.
		holding = holding[min(len(holding), 1):]
	}
}

func (c *crowd) settleOne(module *modkit.Module, m modkit.ClaimedMessage) {
	var err error
	var what string
	switch rand.IntN(10) {
	case 0, 1, 2:
		what, err = "ack", module.Ack(c.Context(), m)
	case 3, 4, 5, 6:
		what, err = "nack", module.Nack(c.Context(), m, errors.New("no"))
	case 7:
		what, err = "terminal", module.Nack(c.Context(), m, outbox.Terminal(errors.New("never")))
	default:
		what, err = "release", module.Release(c.Context(), m)
	}
	if errors.Is(err, outbox.ErrLeaseLost) {
		c.mu.Lock()
		c.refused[what]++
		c.mu.Unlock()
	} else if err != nil {
		c.Errorf("%s: %v", what, err)
	}
}

// standStill waits until the worker has no lease of the messages any more.
func (c *crowd) standStill(pool *pgxpool.Pool, worker uuid.UUID, messages []modkit.ClaimedMessage) {
	ids := make([]uuid.UUID, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	await.Check(c, "the leases of "+worker.String()+" to end", func() (over bool) {
		err := pool.QueryRow(c.Context(), `SELECT NOT EXISTS (SELECT FROM modkit_outbox_events
			WHERE id = ANY($1) AND locked_by = $2 AND locked_until >= now())`, ids, worker).Scan(&over)
		if err != nil {
			c.Error(err)
			return true
		}
		return over
	})
}
