package consumer

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/consuming"
)

// run is one call of Run: the entries in hand, and who handles them.
type run struct {
	*Consumer
	group *group
	log   *slog.Logger
	// handling is the context of all handlers. It ends after the grace.
	handling context.Context
	abandon  context.CancelFunc
	queues   *consuming.Queues
	unheard  atomic.Bool // an entry could not be given back

	mu     sync.Mutex
	inHand map[string]*item
	freed  consuming.Signal // sent when an entry is done with

	// The reader's own.
	resume   bool      // our own entries come first
	nextTake time.Time // when to look for those of others
	trouble  string    // what was logged
}

// The pauses while Redis is away.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// read takes entries and hands them out until ctx ends.
func (r *run) read(ctx context.Context) {
	pause := firstPause
	for {
		n := r.freed.Await(ctx, r.room)
		if n == 0 {
			return
		}
		list, err := r.next(ctx, n)
		if err != nil {
			// What was on its way to us is ours, and older than what is new.
			r.resume = true
			r.tell(err)
			consuming.Pause(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		r.tell(nil)
		for _, p := range list {
			r.add(ctx, p)
		}
	}
}

// next gets at most n entries: first our own from before, then from time to time those of
// consumers that are gone, then new ones.
func (r *run) next(ctx context.Context, n int) ([]pending, error) {
	if r.resume {
		list, more, err := r.group.take(ctx, true, n, r.ids())
		if err == nil {
			r.resume = more
		}
		if err != nil || len(list) > 0 {
			return list, r.created(ctx, err)
		}
	}
	if time.Now().After(r.nextTake) {
		list, more, err := r.group.take(ctx, false, n, r.ids())
		if err == nil && !more {
			r.nextTake = time.Now().Add(r.config.MinIdle / 4)
		}
		if err != nil || len(list) > 0 {
			return list, r.created(ctx, err)
		}
	}
	list, err := r.group.read(ctx, n)
	return list, r.created(ctx, err)
}

// tell logs when Redis goes and when it is back, each once.
func (r *run) tell(err error) {
	now := ""
	switch {
	case errors.Is(err, errNoGroup):
		now = "there is nothing to consume yet; waiting"
	case err != nil:
		now = "Redis is away; waiting"
	}
	if now == r.trouble {
		return
	}
	r.trouble = now
	if err == nil {
		r.log.Info("consuming again")
		return
	}
	r.log.Error(now, "error", outbox.ErrorText(err))
}

// room is how many entries more may be in hand.
func (r *run) room() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return 2*r.config.Process.Concurrency - len(r.inHand)
}

func (r *run) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.inHand))
}

// keepAlive shows a sign of life for all entries in hand, and ends the handling of those that another consumer took.
func (r *run) keepAlive(ctx context.Context) {
	ids := r.ids()
	if len(ids) == 0 {
		return
	}
	counts, err := r.group.hold(ctx, keep, ids...)
	if err != nil {
		return // the reader tells of it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, id := range ids {
		if i := r.inHand[id]; i != nil && counts[n] == taken {
			i.lose(errTaken)
		}
	}
}

var errTaken = errors.New("redis: another consumer has taken the entry over")

// finish gives back what is not being handled, and waits for the handlers: for the grace, and then until
// they have noticed its end.
func (r *run) finish() {
	grace := time.AfterFunc(r.config.Process.Grace, func() {
		r.log.Warn("the grace is over; handlers are told to stop")
		r.abandon()
	})
	for _, i := range r.waiting() {
		r.giveBack(i)
	}
	r.queues.Stop()
	grace.Stop()
	r.abandon()
}

// waiting are the entries in hand that are not being handled.
func (r *run) waiting() (list []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.inHand {
		if !i.running {
			list = append(list, i)
		}
	}
	return list
}
