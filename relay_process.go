package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"
)

// errInFlight is given to an event that this relay is still publishing from an earlier claim.
var errInFlight = errors.New("the event is still being published from an earlier claim")

// settleTries bounds how often a settle is tried while the database fails.
const settleTries = 8

// process takes one batch from claim to settle. It goes on when ctx ends: what has been
// published must be settled. The outcomes are written over those of an earlier batch.
func (r *Relay) process(ctx context.Context, batch Batch, outcomes []Outcome) []Outcome {
	defer batch.Abandon()
	messages := batch.Messages()
	var taken []bool
	if !r.config.Store.Traits().Exclusive {
		taken = r.inFlight.add(messages)
		defer r.inFlight.remove(messages, taken)
	}

	// The lease is kept while the broker is slow, and the publish is given up when the
	// batch is no longer ours.
	publishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.PublishTimeout)
	stopRenewing := r.keepLease(publishing, batch, cancel)
	start := time.Now()
	errs := r.publish(publishing, messages, taken)
	published := time.Now()
	stopRenewing()
	cancel()

	outcomes = r.judge(messages, errs, outcomes)
	lost, err := r.settle(context.WithoutCancel(ctx), batch, outcomes)
	if err != nil {
		r.log.Error("a batch could not be settled; it will be published again", "events", len(messages), "error", err)
		each(r.config.Hooks, func(h StoreErrorHook) { h.OnStoreError(err) })
		// What cannot be settled would be claimed and published over and over.
		r.rest.after(true)
		return outcomes
	}
	for _, id := range lost {
		r.log.Warn("lease lost: the event is left to its new owner", "event_id", id)
	}
	each(r.config.Hooks, func(h SettleHook) {
		h.OnSettle(BatchReport{
			Messages: messages, Outcomes: outcomes, Lost: lost, Publish: published.Sub(start), Settle: time.Since(published),
		})
	})
	r.backOff(outcomes)
	if unblocker, ok := batch.(Unblocker); ok && unblocker.Unblocked() {
		r.Nudge()
	}
	return outcomes
}

// giveBack releases a batch that was claimed and will not be published now.
func (r *Relay) giveBack(batch Batch) {
	defer batch.Abandon()
	outcomes := make([]Outcome, len(batch.Messages()))
	ctx, cancel := context.WithTimeout(context.Background(), r.config.Store.Traits().Lease)
	defer cancel()
	if _, err := batch.Settle(ctx, outcomes); err != nil {
		r.log.Warn("a batch could not be released; it is due again when its lease ends", "events", len(outcomes), "error", err)
	}
}

// keepLease renews the batch until the returned function is called. If it is lost, giveUp is
// called: publishing on would only make duplicates.
func (r *Relay) keepLease(ctx context.Context, batch Batch, giveUp context.CancelFunc) (stop func()) {
	lease := r.config.Store.Traits().Lease
	enough, stopped := make(chan struct{}), make(chan struct{})
	// A renewal is never cut short: it might have happened, and then the settle would bring
	// the wrong proof.
	ctx = context.WithoutCancel(ctx)
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
				giveUp()
				return
			} else if err != nil {
				r.log.Warn("the lease could not be renewed; trying again", "error", err)
			}
		}
	}()
	return func() {
		close(enough)
		<-stopped
	}
}

// publish checks every message and hands those that pass to the publisher, in order. Taken are
// those that are being published already; nil if none are.
func (r *Relay) publish(ctx context.Context, messages []Message, taken []bool) []error {
	send := r.call
	if r.inOrder {
		send = func(ctx context.Context, messages []Message) []error { return PublishByKey(ctx, messages, r.call) }
	}
	if r.config.Registry == nil && r.config.DefaultTopic == "" && !slices.Contains(taken, true) {
		return send(ctx, messages)
	}
	errs := make([]error, len(messages))
	// A copy: the topic is filled in, and the publisher sees only what it may publish.
	ready := make([]Message, 0, len(messages))
	places := make([]int, 0, len(messages))
	// On a store that keeps order nothing may overtake a message that is not handed over.
	stopped := make(map[string]bool)
	for i := range messages {
		message := messages[i]
		switch {
		case stopped[message.Key]:
			errs[i] = ErrNotAttempted
		case taken != nil && taken[i]:
			errs[i] = errInFlight
		case r.config.Registry != nil:
			errs[i] = r.config.Registry.Check(&message)
		}
		if errs[i] != nil {
			stopped[message.Key] = message.Key != "" && r.config.Store.Traits().InOrder
			continue
		}
		if message.Topic == "" {
			message.Topic = r.config.DefaultTopic
		}
		ready, places = append(ready, message), append(places, i)
	}
	if len(ready) == 0 {
		return errs
	}
	for i, err := range send(ctx, ready) {
		errs[places[i]] = err
	}
	return errs
}

// call runs the publisher. A panic with many messages says nothing about which was at
// fault, so each is tried by itself: the others must not pay for it. On a store that keeps
// order, none is tried after one of its key that failed.
func (r *Relay) call(ctx context.Context, messages []Message) []error {
	errs, panicked := r.callOnce(ctx, messages)
	if !panicked || len(messages) == 1 {
		return errs
	}
	failed := make(map[string]bool)
	for i := range messages {
		key := messages[i].Key
		if failed[key] {
			errs[i] = ErrNotAttempted
			continue
		}
		one, _ := r.callOnce(ctx, messages[i:i+1])
		errs[i] = one[0]
		failed[key] = one[0] != nil && key != "" && r.config.Store.Traits().InOrder
	}
	return errs
}

func (r *Relay) callOnce(ctx context.Context, messages []Message) (errs []error, panicked bool) {
	defer func() {
		if value := recover(); value != nil {
			r.log.Error("publisher panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
			errs, panicked = fill(len(messages), panicError(value)), true
		}
	}()
	errs = r.config.Publisher.Publish(ctx, messages)
	if len(errs) != len(messages) {
		return fill(len(messages), fmt.Errorf("the publisher answered for %d of %d messages", len(errs), len(messages))), false
	}
	return errs, false
}

func fill(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// judge turns the publisher's answers into outcomes, in place of those given. It opens the
// breaker when the broker is away.
func (r *Relay) judge(messages []Message, errs []error, outcomes []Outcome) []Outcome {
	outcomes = slices.Grow(outcomes[:0], len(messages))[:len(messages)]
	clear(outcomes)
	away := false
	acknowledged := slices.ContainsFunc(errs, func(err error) bool { return err == nil })
	for i, err := range errs {
		message := &messages[i]
		if err == nil {
			outcomes[i].Kind = Delivered
			continue
		}
		if errors.Is(err, errInFlight) || errors.Is(err, ErrNotAttempted) {
			continue // released
		}
		class := Classify(err)
		if class == ClassUnavailable {
			first := !away
			away = true
			// Only the first is where the connection broke; the rest never had their turn.
			if !first || !r.breaker.broke(message.ID, acknowledged) {
				r.openBreaker(err)
				continue // released
			}
			err = fmt.Errorf("the connection broke at this event %d times running: %w", poisonBreaks, err)
			class = ClassRetryable
			r.openBreaker(err)
		}
		outcomes[i] = r.failure(message, class, err)
	}
	r.breaker.passed(messages, outcomes)
	r.logOutcomes(messages, outcomes)
	return outcomes
}

func (r *Relay) failure(message *Message, class Class, err error) Outcome {
	outcome := Outcome{Kind: Failed, Error: ErrorText(err)}
	switch {
	case class == ClassTerminal:
		outcome.Kind, outcome.Reason = Died, ReasonOf(err)
		switch outcome.Reason {
		case ReasonUnknownType, ReasonInvalidPayload, ReasonInvalidAggregate:
			outcome.Uncounted = true // refused by the check: it was not an attempt
		}
	case message.Attempt >= message.MaxAttempts:
		outcome.Kind, outcome.Reason = Died, ReasonMaxAttempts
	default:
		outcome.Delay = max(r.config.Retry.Delay(message.Attempt), askedDelay(err))
	}
	return outcome
}

func (r *Relay) openBreaker(err error) {
	if !r.breaker.trip() {
		return
	}
	r.log.Warn("the broker is unavailable; nothing is counted, events wait", "error", ErrorText(err))
	each(r.config.Hooks, func(h BreakerHook) { h.OnBreaker(true, err) })
}

// settle writes the outcomes. A database that fails is given some tries: the batch is
// published already, and giving up means that it is published again.
func (r *Relay) settle(ctx context.Context, batch Batch, outcomes []Outcome) (lost []uuid.UUID, err error) {
	for try := range settleTries {
		bounded, cancel := context.WithTimeout(ctx, r.config.Store.Traits().Lease)
		lost, err = batch.Settle(bounded, outcomes)
		cancel()
		if err == nil || errors.Is(err, ErrLeaseLost) {
			return lost, err
		}
		r.log.Warn("settle failed", "try", try+1, "of", settleTries, "error", err)
		if try < settleTries-1 {
			time.Sleep(storeDelay(try))
		}
	}
	return nil, err
}

// backOff holds up the next claim after a round with failures where events have no due
// time of their own: they would be claimed again at once, and their attempts be gone in
// a second.
func (r *Relay) backOff(outcomes []Outcome) {
	failed := !r.config.Store.Traits().Backoff &&
		slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Kind == Failed })
	r.rest.after(failed)
}

func (r *Relay) logOutcomes(messages []Message, outcomes []Outcome) {
	for i := range messages {
		level := r.outcomeLevel(outcomes[i].Kind)
		if !r.log.Enabled(context.Background(), level) {
			continue
		}
		m, outcome := &messages[i], &outcomes[i]
		attrs := []slog.Attr{
			slog.String("event_id", m.ID.String()), slog.String("event_type", m.Type),
			slog.String("aggregate_type", m.AggregateType), slog.String("aggregate_id", m.AggregateID),
			slog.Int("attempt", m.Attempt),
		}
		// What tells the events of a shared table apart.
		if m.Namespace != "" {
			attrs = append(attrs, slog.String("namespace", m.Namespace), slog.String("topic", m.Topic))
		}
		if m.TenantID != uuid.Nil {
			attrs = append(attrs, slog.String("tenant_id", m.TenantID.String()))
		}
		if outcome.Error != "" {
			attrs = append(attrs, slog.String("error", outcome.Error))
		}
		if outcome.Kind == Failed {
			attrs = append(attrs, slog.Duration("next_in", outcome.Delay))
		}
		if outcome.Kind == Died {
			attrs = append(attrs, slog.String("reason", string(outcome.Reason)))
		}
		r.log.LogAttrs(context.Background(), level, "event "+outcome.Kind.String(), attrs...)
	}
}

// outcomeLevel is the level at which an outcome is logged. What was given back was no attempt.
func (r *Relay) outcomeLevel(kind OutcomeKind) slog.Level {
	switch {
	case kind == Released:
		return slog.LevelDebug
	case r.config.AttemptLevel != nil:
		return r.config.AttemptLevel.Level()
	case kind == Failed:
		return slog.LevelWarn
	case kind == Died:
		return slog.LevelError
	}
	return slog.LevelDebug
}
