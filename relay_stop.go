package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// errUnsettled is what Stop returns when the time was not enough.
var errUnsettled = errors.New("outbox: the relay stopped before everything was settled; what was not is published again when its lease ends")

// Stop ends the relay and waits for it. It claims no more, finishes and settles what is being published, and gives back
// what is not. All of that takes no longer than ctx, nor than RelayConfig.Grace: publishing is cut short in time for what was
// delivered to be settled. An error means that something was not settled, and will be published again. Stop is a no-op
// if the relay is not running.
func (r *Relay) Stop(ctx context.Context) error {
	r.mu.Lock()
	run := r.current
	r.mu.Unlock()
	if run == nil {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		run.cutAfter(time.Until(deadline))
	}
	defer context.AfterFunc(ctx, run.cut)()
	run.stop()
	select {
	case <-run.done:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errUnsettled, ctx.Err())
	}
	if run.unsettled.Load() {
		return errUnsettled
	}
	return nil
}

// run is one run of a relay. It ends in three steps: it claims no more, it publishes no more, it settles no more.
type run struct {
	claiming, publishing, settling context.Context
	stop                           context.CancelFunc
	cutPublishing, cutSettling     context.CancelFunc
	// unsettled is set when something could not be settled in the end.
	unsettled atomic.Bool
	// ends stops the run from ending by its grace.
	ends func() bool
	done chan struct{}
}

// newRun makes a run that ends with ctx, a grace later at the latest.
func newRun(ctx context.Context, grace time.Duration) *run {
	r := &run{done: make(chan struct{})}
	r.claiming, r.stop = context.WithCancel(ctx)
	r.publishing, r.cutPublishing = context.WithCancel(context.WithoutCancel(ctx))
	r.settling, r.cutSettling = context.WithCancel(context.WithoutCancel(ctx))
	r.ends = context.AfterFunc(r.claiming, func() { r.cutAfter(grace) })
	return r
}

// cutAfter bounds the rest of the run. Publishing ends early enough for what was delivered to be settled, and settling
// for the end to be reported.
func (r *run) cutAfter(rest time.Duration) {
	publishing, settling := time.AfterFunc(rest*2/3, r.cutPublishing), time.AfterFunc(rest*9/10, r.cutSettling)
	context.AfterFunc(r.settling, func() {
		publishing.Stop()
		settling.Stop()
	})
}

// missed notes that something could not be settled. Before the end that is nothing yet: it is claimed again. Nor is it where
// the lease was lost: others settle it.
func (r *run) missed(err error) {
	if r.claiming.Err() != nil && !errors.Is(err, ErrLeaseLost) {
		r.unsettled.Store(true)
	}
}

func (r *run) cut() {
	r.cutPublishing()
	r.cutSettling()
}

// end frees what the run holds, and tells those that wait for it.
func (r *run) end() {
	r.ends()
	r.stop()
	r.cut()
	close(r.done)
}
