package outbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// maxAttemptLines is how many failed attempts are logged per second; the rest are only counted.
const maxAttemptLines = 5

// attemptLog keeps failed attempts from flooding the log.
type attemptLog struct {
	mu     sync.Mutex
	second int64
	lines  int
	left   int
}

// take reports whether a line may be logged, and how many lines were left out in the seconds before.
func (l *attemptLog) take(now time.Time) (ok bool, leftOut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); second != l.second {
		leftOut, l.second, l.lines, l.left = l.left, second, 0, 0
	}
	if l.lines++; l.lines <= maxAttemptLines {
		return true, leftOut
	}
	l.left++
	return false, leftOut
}

// flush returns how many lines were left out since the last one.
func (l *attemptLog) flush() (leftOut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	leftOut, l.left = l.left, 0
	return leftOut
}

// logAttempts logs every attempt, counted or not, if RelayConfig.AttemptLevel asks for it. It runs before the
// settle, so that a process killed between the two leaves a trace. It skips deliveries that were logged with their
// acknowledgement.
func (r *Relay) logAttempts(a *attempt, outcomes []Outcome) {
	if r.config.AttemptLevel == nil {
		return
	}
	for i, err := range a.errs {
		level, outcome := r.config.AttemptLevel.Level(), outcomes[i]
		switch {
		case err == nil && r.acks.publisher != nil:
			continue
		case outcome.given() && (!a.sent(i) || isUntried(err)):
			level = slog.LevelDebug
		case outcome.given():
			outcome.Error = ErrorText(err)
		}
		r.logOutcome(level, &a.messages[i], &outcome)
	}
}

// logOutcomes logs the outcomes of a batch, except for events that were lost.
func (r *Relay) logOutcomes(messages []Message, outcomes []Outcome, lost []uuid.UUID) {
	if r.config.AttemptLevel != nil {
		return
	}
	for i := range messages {
		if len(lost) > 0 && slices.Contains(lost, messages[i].ID) {
			continue
		}
		level := slog.LevelDebug
		switch outcomes[i].Kind {
		case Died:
			level = slog.LevelWarn
		case Failed:
			ok, leftOut := r.attempts.take(time.Now())
			r.logLeftOut(leftOut)
			if ok {
				level = slog.LevelWarn
			}
		}
		r.logOutcome(level, &messages[i], &outcomes[i])
	}
}

// logLeftOut logs how many failed attempts had no line of their own.
func (r *Relay) logLeftOut(attempts int) {
	if attempts > 0 {
		r.log.Warn("more attempts failed", "attempts", attempts)
	}
}

func (r *Relay) logOutcome(level slog.Level, m *Message, outcome *Outcome) {
	if !r.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{slog.String("event_id", m.ID.String()), slog.String("event_type", m.Type)}
	// A line per attempt is for a program, which expects every field in it.
	if m.AggregateType != "" || m.AggregateID != "" || r.config.AttemptLevel != nil {
		attrs = append(attrs, slog.String("aggregate_type", m.AggregateType), slog.String("aggregate_id", m.AggregateID))
	}
	if !outcome.given() || r.config.AttemptLevel != nil {
		attrs = append(attrs, slog.Int("attempt", m.Attempt))
	}
	if m.Namespace != "" {
		attrs = append(attrs, slog.String("namespace", m.Namespace))
	}
	if m.Topic != "" {
		attrs = append(attrs, slog.String("topic", m.Topic))
	}
	if m.TenantID != uuid.Nil {
		attrs = append(attrs, slog.String("tenant_id", m.TenantID.String()))
	}
	if outcome.Error != "" {
		attrs = append(attrs, slog.String("error", outcome.Error))
	}
	if outcome.Kind == Failed {
		attrs = append(attrs, slog.String("next_in", outcome.Delay.Round(time.Millisecond).String()))
	}
	if outcome.Kind == Died {
		attrs = append(attrs, slog.String("reason", string(outcome.Reason)))
	}
	attrs = append(attrs, r.attemptFields(m, outcome)...)
	r.log.LogAttrs(context.Background(), level, "event "+outcome.Kind.String(), attrs...)
}

// firstIDs returns the first few of a long list, for the log.
func firstIDs(ids []uuid.UUID) []uuid.UUID {
	const some = 5
	return ids[:min(len(ids), some)]
}
