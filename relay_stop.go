package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// errUnsettled is returned by Stop if it ran out of time.
var errUnsettled = errors.New("outbox: the relay stopped before everything was settled; what was not is published again when its lease ends")

// Stop stops the relay and waits for it. The relay stops claiming, finishes and settles what is being published,
// and releases the rest. That takes no longer than ctx and RelayConfig.Grace allow: publishing is cancelled in time
// to settle what was delivered. An error means that some events were not settled and will be published again. Stop
// is a no-op if the relay is not running.
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
	return run.result()
}

// run is one run of a relay. It ends in three steps: it stops claiming, then publishing, then settling.
type run struct {
	claiming, publishing, settling context.Context
	stop                           context.CancelFunc
	cutPublishing, cutSettling     context.CancelFunc
	// unsettled is set if something could not be settled before the end.
	unsettled atomic.Bool
	// ends cancels the end by grace.
	ends func() bool
	done chan struct{}
}

// newRun returns a run that begins to stop when ctx ends, and is over a grace later at the latest.
func newRun(ctx context.Context, grace time.Duration) *run {
	r := &run{done: make(chan struct{})}
	r.claiming, r.stop = context.WithCancel(ctx)
	r.publishing, r.cutPublishing = context.WithCancel(context.WithoutCancel(ctx))
	r.settling, r.cutSettling = context.WithCancel(context.WithoutCancel(ctx))
	r.ends = context.AfterFunc(r.claiming, func() { r.cutAfter(grace) })
	return r
}

// cutAfter bounds the rest of the run. Publishing ends early enough to settle what was delivered, and settling
// early enough to report the end.
func (r *run) cutAfter(rest time.Duration) {
	publishing, settling := time.AfterFunc(rest*2/3, r.cutPublishing), time.AfterFunc(rest*9/10, r.cutSettling)
	context.AfterFunc(r.settling, func() {
		publishing.Stop()
		settling.Stop()
	})
}

// missed records that something could not be settled. While the relay runs that does not matter, because it is
// claimed again; nor does it after a lost lease, because others settle it.
func (r *run) missed(err error) {
	if r.claiming.Err() != nil && !errors.Is(err, ErrLeaseLost) {
		r.unsettled.Store(true)
	}
}

// result returns an error if something could not be settled before the end.
func (r *run) result() error {
	if r.unsettled.Load() {
		return errUnsettled
	}
	return nil
}

func (r *run) cut() {
	r.cutPublishing()
	r.cutSettling()
}

// end frees what the run holds and wakes those that wait for its end.
func (r *run) end() {
	r.ends()
	r.stop()
	r.cut()
	close(r.done)
}
