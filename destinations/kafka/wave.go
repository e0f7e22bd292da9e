package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
)

const (
	// patience is how long a wave may stand still while connections fail.
	patience  = 3 * time.Second
	lookEvery = 100 * time.Millisecond
)

// errUnanswered stands for an answer that has not come.
var errUnanswered = errors.New("unanswered")

// wave is records that are under way together.
type wave struct {
	records []*kgo.Record

	mu   sync.Mutex
	errs []error
	left int
	last time.Time // when something was answered
	done chan struct{}
}

// produce sends records and waits for the answer to each. If it gives up early, the next wave has to wait for the
// rest: the client cannot take back what is on a connection.
func (p *Publisher) produce(ctx context.Context, client *kgo.Client, records []*kgo.Record) []error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return slices.Repeat([]error{outbox.ErrNotAttempted}, len(records))
	}
	if client != p.current() {
		<-p.turn // it was replaced: what the wave was cut for does not hold
		return slices.Repeat([]error{outbox.ErrNotAttempted}, len(records))
	}
	began := time.Now()
	w := &wave{
		records: records,
		errs:    slices.Repeat([]error{errUnanswered}, len(records)), left: len(records), last: began, done: make(chan struct{}),
	}
	// When this ends, the client drops what it can.
	sending, giveUp := context.WithCancel(ctx)
	for i, record := range records {
		client.Produce(sending, record, func(_ *kgo.Record, err error) { w.answer(i, err) })
	}
	go func() {
		// It returns when every record is answered, at the latest when the client is closed.
		_ = client.Flush(context.WithoutCancel(ctx))
		giveUp()
		<-p.turn
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.done:
			w.explain(p.health, began)
			return w.rest(p.health.since(began, nil), ctx.Err())
		case <-ctx.Done():
			giveUp()
			return w.rest(p.health.since(began, nil), ctx.Err())
		case <-look.C:
			if failure := p.health.since(began, nil); failure != nil && w.idle() > patience {
				giveUp()
				return w.rest(failure, nil)
			}
		}
	}
}

// answer records what became of a record.
func (w *wave) answer(i int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[i], w.last = err, time.Now()
	if w.left--; w.left == 0 {
		close(w.done)
	}
}

// explain adds why connections failed, if the client only says that it has tried often enough.
func (w *wave) explain(h *health, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, err := range w.errs {
		if errors.Is(err, kgo.ErrRecordRetries) {
			w.errs[i] = h.since(began, err)
		}
	}
}

func (w *wave) idle() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}

// rest returns the answers. A record without one gets the connection's failure or, if there is none, a timeout.
func (w *wave) rest(failure, ended error) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := slices.Clone(w.errs)
	answers := make(map[string]bool)
	for i, err := range errs {
		answers[w.records[i].Topic] = answers[w.records[i].Topic] || err == nil
	}
	for i, err := range errs {
		switch {
		case !errors.Is(err, errUnanswered) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		case failure != nil:
			errs[i] = failure
		case ended == nil: // some other time was up, inside the client
		case answers[w.records[i].Topic]:
			errs[i] = behindError{ended}
		default:
			errs[i] = ended
		}
	}
	return errs
}
