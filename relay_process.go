package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// settleTries is how often a settle is tried while the database fails.
const settleTries = 8

// process publishes and settles one batch. It continues while the relay stops: what was published must be settled.
// It reuses the memory of outcomes.
func (r *Relay) process(run *run, c claimed, outcomes []Outcome) []Outcome {
	batch := c.batch
	defer batch.Abandon()
	messages := batch.Messages()
	var taken []bool
	if !r.config.Store.Traits().Exclusive {
		taken = r.inFlight.add(messages)
		defer r.inFlight.remove(messages, taken)
	}

	// Keep the lease while the broker is slow, and stop publishing when the lease is lost.
	publishing, cancel := context.WithTimeout(run.publishing, r.config.PublishTimeout)
	watched := context.AfterFunc(c.lost, cancel)
	start := time.Now()
	a := r.publish(publishing, messages, taken, c.trial)
	published := time.Now()
	if !errors.Is(publishing.Err(), context.Canceled) {
		r.askAfterSilence(run.publishing, a)
	}
	cutShort := run.publishing.Err() != nil
	lostLease := c.stopRenewing()
	watched()
	cancel()

	outcomes = r.judge(a, lostLease || cutShort, outcomes)
	r.logAttempts(a, outcomes)
	lost, err := r.settle(run.settling, batch, outcomes)
	if r.config.AttemptLevel != nil {
		r.acks.note(messages, outcomes, err == nil, lost)
	}
	switch {
	case err != nil:
		run.missed(err)
		r.notSettled(messages, lost, err)
		if len(lost) == 0 {
			return outcomes
		}
	case len(lost) > 0:
		r.log.Warn("lease lost: the events are left to their new owner", "events", len(lost), "event_ids", firstIDs(lost))
		fallthrough
	default:
		r.storeWorks(doingSettle)
	}
	r.logOutcomes(messages, outcomes, lost)
	each(r.config.Hooks, func(h SettleHook) {
		h.OnSettle(BatchReport{
			Messages: messages, Outcomes: outcomes, Lost: lost, Publish: published.Sub(start), Settle: time.Since(published),
		})
	})
	r.backOff(a, outcomes)
	if unblocker, ok := batch.(Unblocker); ok && unblocker.Unblocked() {
		r.Nudge()
	}
	return outcomes
}

// notSettled reports a batch that could not be settled: all of it, or the events that the store names. The relay
// would claim and publish them over and over. So it rests or, if the store names events, passes over those and goes
// on with the others.
func (r *Relay) notSettled(messages []Message, some []uuid.UUID, err error) {
	each(r.config.Hooks, func(h StoreErrorHook) { h.OnStoreError(err) })
	if len(some) == 0 {
		r.log.Error("a batch could not be settled; it will be published again", "events", len(messages), "error", err)
		r.faults.note(doingSettle, err)
		r.rest.after(true)
		return
	}
	r.log.Error("events could not be settled; they will be published again",
		"events", len(some), "event_ids", firstIDs(some), "error", err)
	r.passOver(some)
}

// tellStuck reports events that a claim could not move to dead.
func (r *Relay) tellStuck(batch Batch) {
	met, ok := batch.(StuckBatch)
	if !ok {
		return
	}
	ids, err := met.Stuck()
	if len(ids) == 0 {
		return
	}
	r.log.Error("events with used-up attempts cannot be moved to dead", "events", len(ids), "event_ids", firstIDs(ids), "error", err)
	each(r.config.Hooks, func(h StoreErrorHook) { h.OnStoreError(err) })
	r.passOver(ids)
}

// passOver leaves events out of the next claims, which would only find them again.
func (r *Relay) passOver(ids []uuid.UUID) {
	for _, id := range ids {
		if !r.passedOver.add(id, restMax) {
			r.rest.after(true)
			return
		}
	}
}

// giveBack releases a claimed batch that will not be published now.
func (r *Relay) giveBack(run *run, c claimed) {
	batch := c.batch
	defer batch.Abandon()
	c.stopRenewing() // the settle finds out whether it was lost
	if c.trial {
		defer r.routes.endTrial()
	}
	outcomes := make([]Outcome, len(batch.Messages()))
	ctx, cancel := context.WithTimeout(run.settling, r.config.Store.Traits().Lease)
	defer cancel()
	if _, err := batch.Settle(ctx, outcomes); err != nil {
		run.missed(err)
		r.log.Warn("a batch could not be released; it is due again when its lease ends", "events", len(outcomes), "error", err)
	}
}

// keepLease renews the batch until stop is called. If the lease is lost it calls giveUp: to go on publishing would
// only make duplicates.
func (r *Relay) keepLease(ctx context.Context, batch Batch, giveUp context.CancelFunc) (stop func() (lost bool)) {
	lease := r.config.Store.Traits().Lease
	lost := false
	enough, stopped := make(chan struct{}), make(chan struct{})
	// Only the end of settling cancels a renewal. A cancelled renewal may have happened all the same, and the
	// settle would then carry the wrong proof.
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(lease / minPollsPerLease)
		defer ticker.Stop()
		for {
			select {
			case <-enough:
				return
			case <-ticker.C:
			}
			bounded, cancel := context.WithTimeout(ctx, lease)
			err := batch.Renew(bounded)
			cancel()
			if errors.Is(err, ErrLeaseLost) {
				r.log.Warn("lease lost while publishing", "events", len(batch.Messages()), "error", err)
				lost = true
				giveUp()
				return
			} else if err != nil {
				r.log.Warn("the lease could not be renewed; trying again", "error", err)
			}
		}
	}()
	return func() bool {
		close(enough)
		<-stopped
		return lost
	}
}

// judge turns the publisher's answers into outcomes, in the memory of outcomes, and opens and closes routes. With
// cutShort, because the lease was lost or the relay ran out of time, failures say nothing: the publish was
// cancelled.
func (r *Relay) judge(a *attempt, cutShort bool, outcomes []Outcome) []Outcome {
	outcomes = slices.Grow(outcomes[:0], len(a.messages))[:len(a.messages)]
	clear(outcomes)
	for i, err := range a.errs {
		if err == nil {
			outcomes[i].Kind = Delivered
		}
	}
	if cutShort {
		r.routes.endTrial()
		return outcomes
	}
	if !slices.ContainsFunc(a.errs, func(err error) bool { return err != nil }) {
		r.report(r.routes.passed(a, time.Now())...)
		return outcomes
	}
	findings, news := r.routes.judge(a, time.Now())
	r.report(news...)
	away := r.routes.isClosed()
	for i, err := range a.errs {
		m := &a.messages[i]
		switch f := findings[i]; {
		case err == nil:
		case f.fault == faultEvent, f.fault == faultTerminal:
			outcomes[i] = r.failure(m, f.err)
		case away, f.aside > 0:
			// While the whole destination is closed, nothing is settled; others may only pass this one.
			if outcomes[i].Delay = f.aside; f.aside > 0 {
				outcomes[i].Error = ErrorText(f.err)
			}
		case f.fault == faultTopic:
			outcomes[i] = Outcome{Kind: Stopped, Topic: a.topic(i), Error: ErrorText(err)}
		case isOneOf(err, errTopicClosed):
			outcomes[i] = Outcome{Kind: Stopped, Topic: a.topic(i), Error: r.routes.why(a.topic(i))}
		}
		if findings[i].tell {
			r.log.Warn("event set aside, uncounted: the destination does not take it, and it is not known whether it is at fault",
				"event_id", m.ID.String(), "topic", a.topic(i), "error", ErrorText(findings[i].err))
		}
	}
	return outcomes
}

// failure is the outcome of a failed attempt of a message that is at fault.
func (r *Relay) failure(m *Message, err error) Outcome {
	outcome := FailedAttempt(m.Attempt, m.MaxAttempts, err, max(r.config.Retry.Delay(m.Attempt), askedDelay(err)))
	switch outcome.Reason {
	case ReasonUnknownType, ReasonInvalidPayload, ReasonInvalidAggregate, ReasonInvalidRow:
		outcome.Uncounted = true // the check refused it before any attempt
	}
	return outcome
}

// FailedAttempt decides the outcome of an attempt that failed. The message is dead if no retry can mend the error, or if
// this was the last attempt. Otherwise it is tried again after the delay.
func FailedAttempt(attempt, maxAttempts int, err error, delay time.Duration) Outcome {
	outcome := Outcome{Kind: Died, Error: ErrorText(err)}
	switch {
	case Classify(err) == ClassTerminal:
		outcome.Reason = ReasonOf(err)
	case attempt >= maxAttempts:
		outcome.Reason = ReasonMaxAttempts
	default:
		outcome.Kind, outcome.Delay = Failed, delay
	}
	return outcome
}

// InvalidRow returns the outcome of a message that cannot be read; see Message.Invalid.
func InvalidRow(err error) Outcome {
	return Outcome{Kind: Died, Reason: ReasonInvalidRow, Error: ErrorText(err), Uncounted: true}
}

// settle writes the outcomes. It retries while the database fails: the batch is already published, and giving up
// would publish it again.
func (r *Relay) settle(ctx context.Context, batch Batch, outcomes []Outcome) (lost []uuid.UUID, err error) {
	for try := range settleTries {
		bounded, cancel := context.WithTimeout(ctx, r.config.Store.Traits().Lease)
		lost, err = batch.Settle(bounded, outcomes)
		cancel()
		if err == nil || errors.Is(err, ErrLeaseLost) {
			return lost, err
		}
		r.log.Warn("settle failed", "try", try+1, "of", settleTries, "error", err)
		if try == settleTries-1 || !r.pause(ctx, storeDelay(try), nil) {
			break
		}
	}
	return nil, err
}
