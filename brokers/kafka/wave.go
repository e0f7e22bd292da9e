package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// patience is how long a wave may stand still while connections fail.
	patience  = 3 * time.Second
	lookEvery = 100 * time.Millisecond
)

var (
	// errStuck is a wave before this one that the client has not given up yet.
	errStuck = errors.New("the cluster has not answered for the messages before these")
	// errUnanswered stands for an answer that has not come.
	errUnanswered = errors.New("unanswered")
)

// wave is records that are under way together.
type wave struct {
	mu   sync.Mutex
	errs []error
	left int
	last time.Time // when something was answered
	done chan struct{}
}

// produce sends records and waits for the answer to each. When it gives up before all are
// there, the next wave has to wait for the rest: the client cannot take back what is on a
// connection.
func (p *Publisher) produce(ctx context.Context, records []*kgo.Record) []error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return slices.Repeat([]error{unreachableError{errStuck}}, len(records))
	}
	began := time.Now()
	w := &wave{
		errs: slices.Repeat([]error{errUnanswered}, len(records)), left: len(records), last: began, done: make(chan struct{}),
	}
	// When this ends, the client drops what it can.
	sending, giveUp := context.WithCancel(ctx)
	for i, record := range records {
		p.client.Produce(sending, record, func(_ *kgo.Record, err error) { w.answer(i, err) })
	}
	go func() {
		// It returns when every record is answered, at the latest when the client is closed.
		_ = p.client.Flush(context.WithoutCancel(ctx))
		giveUp()
		<-p.turn
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.done:
			return w.complete(p.health, began)
		case <-ctx.Done():
			giveUp()
			return w.rest(p.health.since(began, ctx.Err()))
		case <-look.C:
			if failure := p.health.since(began, nil); failure != nil && w.idle() > patience {
				giveUp()
				return w.rest(failure)
			}
		}
	}
}

// answer notes what became of a record.
func (w *wave) answer(i int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[i], w.last = err, time.Now()
	if w.left--; w.left == 0 {
		close(w.done)
	}
}

// complete is the answers when all have come. The client tells of connections that failed
// over and over only that it has tried often enough.
func (w *wave) complete(h *health, began time.Time) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, err := range w.errs {
		if errors.Is(err, kgo.ErrRecordRetries) {
			w.errs[i] = h.since(began, err)
		}
	}
	return w.errs
}

func (w *wave) idle() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}

// rest is the answers, with this error where there is none.
func (w *wave) rest(err error) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := slices.Clone(w.errs)
	for i := range errs {
		if errors.Is(errs[i], errUnanswered) || errors.Is(errs[i], context.Canceled) {
			errs[i] = err
		}
	}
	return errs
}
