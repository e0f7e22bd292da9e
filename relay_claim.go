package outbox

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// idleFirst is the first pause of a relay that found nothing; it doubles up to Poll.
	idleFirst = 5 * time.Millisecond
	// trickle is the part of a full batch below which a claim is taken to have found all there
	// was: looking again at once would find next to nothing, event after event.
	trickle = 10
	// storeRetryFirst and storeRetryMax bound the pauses after failures of the store.
	storeRetryFirst = 100 * time.Millisecond
	storeRetryMax   = 5 * time.Second
	// claimGrace is how long a claim may go on after the relay was told to stop.
	claimGrace = 5 * time.Second
)

// claimed is a batch on its way to a worker.
type claimed struct {
	batch Batch
	// trial is set when it is to find out whether the destination is back.
	trial bool
	// lost ends when the lease does, which is renewed until stopRenewing is called.
	lost         context.Context
	stopRenewing func() (lost bool)
}

// claimLoop claims batch after batch and hands them to the workers. Polling is what makes
// it correct; nudges only make it quick. It returns an error when the store is gone.
func (r *Relay) claimLoop(ctx context.Context, run *run, work chan<- claimed, held chan struct{}, drain bool) error {
	idle, failures := idleFirst, 0
	for {
		select {
		case held <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		if !r.pause(ctx, r.rest.left(), nil) {
			return nil
		}
		if drain && r.routes.isClosed() && r.drained(ctx, held, 1) {
			return nil // nobody needs the destination
		}
		admitted, err := r.awaitDestination(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		start := time.Now()
		batch, err := r.claim(ctx, run, admitted)
		if err != nil {
			<-held
			r.routes.released(admitted)
			if errors.Is(err, ErrGone) {
				return err
			}
			r.storeFailed(ctx, doingClaim, err)
			if !r.pause(ctx, storeDelay(failures), nil) {
				return nil
			}
			failures++
			continue
		}
		failures = 0
		r.storeWorks(doingClaim)
		r.tellStuck(batch)
		if dead := int64(len(batch.Exhausted())); dead > 0 {
			r.reportDead(dead)
		}
		if n := len(batch.Messages()); n > 0 {
			idle = idleFirst
			report := ClaimReport{Events: n, Reclaimed: batch.Reclaimed(), Took: time.Since(start)}
			if report.Reclaimed > 0 {
				r.log.Warn("took over events whose lease ran out", "events", report.Reclaimed)
			}
			each(r.config.Hooks, func(h ClaimHook) { h.OnClaim(report) })
			// From now on, not from its turn on: it may have to wait for longer than its lease.
			lost, giveUp := context.WithCancel(context.WithoutCancel(ctx))
			work <- claimed{batch, admitted.trial, lost, r.keepLease(run.settling, batch, giveUp)}
			if drain || n*trickle >= r.config.BatchSize {
				continue
			}
		} else {
			batch.Abandon()
			<-held
			r.routes.released(admitted)
			if drain && r.drained(ctx, held, 0) {
				return nil
			}
		}
		if !r.pause(ctx, r.passedOver.left(idlePause(idle)), r.nudge) {
			return nil
		}
		idle = min(idle*2, r.config.Poll)
	}
}

// trialClaim is how many events a trial is chosen from.
const trialClaim = 100

// claim claims a batch. The end of ctx does not cut it short: a claim that the server has
// made and this process has not heard of would be held, and counted, by nobody. Only a
// database that does not answer is not waited for: when the lease would be over, the claim is
// of no use.
func (r *Relay) claim(ctx context.Context, run *run, admitted admission) (Batch, error) {
	inner, cancel := context.WithTimeout(run.settling, r.config.Store.Traits().Lease)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(claimGrace, cancel)
		context.AfterFunc(inner, func() { timer.Stop() })
	})
	defer stop()
	limit := r.config.BatchSize
	if admitted.trial {
		limit = min(limit, trialClaim)
	}
	return r.config.Store.Claim(inner, ClaimRequest{Limit: limit, Closed: r.closedRoutes(admitted.closed), Except: r.passedOver.list()})
}

// closedRoutes says which events go to closed topics.
func (r *Relay) closedRoutes(topics []string) ClosedRoutes {
	closed := ClosedRoutes{Topics: topics}
	if len(topics) == 0 {
		return closed
	}
	if slices.Contains(topics, r.config.DefaultTopic) || slices.Contains(topics, noTopic) {
		closed.Topics = append(slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return topic == noTopic }), "")
	}
	for name, route := range r.config.Registry {
		switch {
		case route.Topic == "":
		case slices.Contains(topics, route.Topic):
			closed.Types = append(closed.Types, name)
		default:
			closed.OtherTypes = append(closed.OtherTypes, name)
		}
	}
	slices.Sort(closed.Types)
	slices.Sort(closed.OtherTypes)
	return closed
}

// drained reports whether nothing is left to do, here or elsewhere. Of what is held, mine is the
// caller's and without a batch.
func (r *Relay) drained(ctx context.Context, held chan struct{}, mine int) bool {
	if len(held) > mine {
		return false
	}
	if idler, ok := r.config.Store.(Idler); ok {
		idle, err := idler.Idle(ctx)
		if err != nil {
			r.storeFailed(ctx, "look for what is left", err)
		}
		return idle && err == nil
	}
	stats, err := r.config.Store.Stats(ctx)
	if err != nil {
		r.storeFailed(ctx, "stats", err)
		return false
	}
	if stats.Exhausted > 0 {
		r.sweep(ctx)
		return false
	}
	return stats.Due+stats.Held+stats.Retrying == 0
}

// pause waits, but not past a nudge. It reports false when ctx ended.
func (r *Relay) pause(ctx context.Context, d time.Duration, nudge <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-nudge:
		return true
	case <-ctx.Done():
		return false
	}
}

// idlePause is a little less than a delay, so that relays do not look all at once, and not
// much less: an idle relay should look seldom.
func idlePause(delay time.Duration) time.Duration {
	return delay - jitter(delay/5)
}

func storeDelay(failures int) time.Duration {
	return jitter(min(storeRetryFirst<<min(failures, 10), storeRetryMax))
}

// waitEvery is the longest time between two looks at the store of a relay that waits for its destination.
const waitEvery = 10 * time.Second

// awaitDestination returns when something may be claimed, or ctx ended. It returns an error when the store is gone
// meanwhile.
func (r *Relay) awaitDestination(ctx context.Context) (admission, error) {
	var look <-chan time.Time
	waiter, watched := r.config.Store.(Waiter)
	for {
		admitted := r.routes.admit()
		if admitted.wait == nil || ctx.Err() != nil {
			return admitted, nil
		}
		if watched && look == nil {
			ticker := time.NewTicker(min(waitEvery, r.config.Store.Traits().Lease/3))
			defer ticker.Stop()
			look = ticker.C
		}
		select {
		case <-admitted.wait:
		case <-look:
			if err := r.wait(ctx, waiter); err != nil {
				return admission{}, err
			}
		case <-ctx.Done():
			return admission{}, nil
		}
	}
}

// wait lets the store know that the relay is there, and claims nothing.
func (r *Relay) wait(ctx context.Context, store Waiter) error {
	inner, cancel := context.WithTimeout(ctx, r.config.Store.Traits().Lease)
	defer cancel()
	err := store.Wait(inner)
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		r.storeFailed(ctx, "wait for the destination", err)
	default:
		r.storeWorks(doingClaim)
	}
	return nil
}
