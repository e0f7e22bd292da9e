package outbox

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// idleFirst is the first pause after a claim that found nothing; it doubles up to Poll.
	idleFirst = 5 * time.Millisecond
	// trickle decides when to claim again at once: only after a batch of at least BatchSize/trickle events. A
	// smaller batch took all there was, and an immediate claim would find next to nothing.
	trickle = 10
	// storeRetryFirst and storeRetryMax bound the pauses after a failure of the store.
	storeRetryFirst = 100 * time.Millisecond
	storeRetryMax   = 5 * time.Second
	// claimGrace is how long a claim may continue after the relay was told to stop.
	claimGrace = 5 * time.Second
)

// claimed is a batch on its way to a worker.
type claimed struct {
	batch Batch
	// trial is set if the batch is a trial of whether the destination is back.
	trial bool
	// lost ends when the lease is lost. The lease is renewed until stopRenewing is called.
	lost         context.Context
	stopRenewing func() (lost bool)
}

// claimLoop claims batch after batch and hands them to the workers. Polling makes it correct; nudges only make it
// fast. It returns an error when the store is gone.
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
			return nil // nothing is left to publish
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
			// Renew from now on: the batch may wait for a worker longer than its lease.
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

// claim claims a batch. The end of ctx does not cancel it at once: if the server made a claim that this process
// never heard of, nobody would hold its events, and its attempts would still count. The claim gives up after one
// lease, when it is of no use any more.
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

// closedRoutes returns which events go to closed topics.
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

// drained reports whether nothing is left to do, here or elsewhere. The caller holds mine slots without a batch.
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

// pause waits until the time is over or a nudge arrives. It returns false if ctx ended.
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

// idlePause shortens a delay a little, so that relays do not all claim at once, but not much, because an idle relay
// should claim rarely.
func idlePause(delay time.Duration) time.Duration {
	return delay - jitter(delay/5)
}

func storeDelay(failures int) time.Duration {
	return jitter(min(storeRetryFirst<<min(failures, 10), storeRetryMax))
}

// waitEvery is the longest time between two calls of Waiter.Wait while the destination is unavailable.
const waitEvery = 10 * time.Second

// awaitDestination returns when something may be claimed or ctx ended. It returns an error if the store is gone.
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

// wait shows the store that the relay is alive, without a claim.
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
