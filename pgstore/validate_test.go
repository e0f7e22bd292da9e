package pgstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
)

// leased is a valid layout with most habits; tests break it one way each.
func leased() Layout {
	return Layout{
		Name: "mine", Table: "events",
		Hold: HoldLease, Done: DoneStatus, Count: CountOnClaim, Terminal: TerminalStatus, MaxAttempts: 3,
		Columns: Columns{
			ID: Column{Name: "id"}, Topic: Column{Name: "topic"}, DedupeKey: Column{Name: "dedupe"},
			Payload: Column{Name: "body"}, Status: Column{Name: "state"}, Attempts: Column{Name: "tries"},
			NextAttemptAt: Column{Name: "due"}, LockedBy: Column{Name: "owner"}, LockedUntil: Column{Name: "lease"},
			CreatedAt: Column{Name: "made"},
		},
		Dedupe: []Field{FieldTopic},
		States: &States{Pending: "new", Processing: "busy", Delivered: "sent", Dead: "dead"},
	}
}

// lettered is a valid layout with the other habits.
func lettered() Layout {
	return Layout{
		Name: "mine", Table: "events",
		Hold: HoldRowLock, Done: DoneTimestamp, Count: CountOnFailure, Terminal: TerminalDeadLetter, MaxAttempts: 3,
		Columns: Columns{
			ID: Column{Name: "id"}, Payload: Column{Name: "body"}, Attempts: Column{Name: "tries"},
			CreatedAt: Column{Name: "made"}, DeliveredAt: Column{Name: "sent"},
		},
		DeadLetter: &DeadLetter{Table: "letters", Columns: DeadLetterColumns{
			ID: Column{Name: "id"}, EventID: Column{Name: "event"}, Payload: Column{Name: "body"},
			Reason: Column{Name: "reason"}, FailedAt: Column{Name: "failed"}, RetriedAt: Column{Name: "retried"},
		}},
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, layout := range []Layout{leased(), lettered()} {
		if err := layout.Validate(); err != nil {
			t.Fatalf("a valid layout was refused: %v", err)
		}
	}
	long := strings.Repeat("é", 32)
	for _, c := range []struct {
		field, words string
		layout       func() Layout
		change       func(*Layout)
	}{
		{"name", "empty", leased, func(l *Layout) { l.Name = "" }},
		{"schema", "NUL", leased, func(l *Layout) { l.Schema = "a\x00b" }},
		{"table", "empty", leased, func(l *Layout) { l.Table = "" }},
		{"table", "64 bytes", leased, func(l *Layout) { l.Table = long }},
		{"table", "UTF-8", leased, func(l *Layout) { l.Table = "\xff" }},
		{"hold", "lease, defer, rowlock", leased, func(l *Layout) { l.Hold = "" }},
		{"done", "status, timestamp", leased, func(l *Layout) { l.Done = "deleted" }},
		{"count", "claim, failure", leased, func(l *Layout) { l.Count = "never" }},
		{"count", "rowlock", lettered, func(l *Layout) { l.Count = CountOnClaim }},
		{"terminal", "status, deadletter", leased, func(l *Layout) { l.Terminal = "shrug" }},
		{"terminal", "no status", lettered, func(l *Layout) { l.Terminal = TerminalStatus }},
		{"maxAttempts", "at least 1", leased, func(l *Layout) { l.MaxAttempts = 0 }},
		{"columns.id", "missing", leased, func(l *Layout) { l.Columns.ID = Column{} }},
		{"columns.payload", "missing", leased, func(l *Layout) { l.Columns.Payload = Column{} }},
		{"columns.attempts", "missing", leased, func(l *Layout) { l.Columns.Attempts = Column{} }},
		{"columns.createdAt", "missing", leased, func(l *Layout) { l.Columns.CreatedAt = Column{} }},
		{"columns.lockedBy", "lease", leased, func(l *Layout) { l.Columns.LockedBy = Column{} }},
		{"columns.lockedUntil", "lease", leased, func(l *Layout) { l.Columns.LockedUntil = Column{} }},
		{"columns.nextAttemptAt", "defer", leased, func(l *Layout) { l.Hold, l.Columns.NextAttemptAt = HoldDefer, Column{} }},
		{"columns.lockedBy", "not \"lease\"", leased, func(l *Layout) { l.Hold = HoldDefer }},
		{"columns.status", "missing", leased, func(l *Layout) { l.Columns.Status = Column{} }},
		{"columns.status", "not \"status\"", lettered, func(l *Layout) { l.Columns.Status = Column{Name: "s"} }},
		{"columns.deliveredAt", "missing", lettered, func(l *Layout) { l.Columns.DeliveredAt = Column{} }},
		{"columns.attempts", "columns.payload", leased, func(l *Layout) { l.Columns.Attempts.Name = "body" }},
		{"columns.topic", "empty", leased, func(l *Layout) { l.Columns.Topic = Column{NotNull: true} }},
		{"columns.topic", "NUL", leased, func(l *Layout) { l.Columns.Topic.Name = "a\x00" }},
		{"columns.topic", "64 bytes", leased, func(l *Layout) { l.Columns.Topic.Name = long }},
		{"columns.topic", "both", leased, func(l *Layout) { l.Columns.Topic.Type, l.Columns.Topic.Enum = "text", "e" }},
		{"columns.topic", "enum", leased, func(l *Layout) { l.Columns.Topic.Enum = "\x00" }},
		{"columns.topic", "one of text", leased, func(l *Layout) { l.Columns.Topic.Type = "integer); DROP TABLE x" }},
		{"columns.topic", "negative", leased, func(l *Layout) { l.Columns.Topic.MaxLength = -1 }},
		{"columns.payload", "bytea", leased, func(l *Layout) { l.Columns.Payload.Type = "xml" }},
		{"states", "missing", leased, func(l *Layout) { l.States = nil }},
		{"states", "not \"status\"", lettered, func(l *Layout) { l.States = &States{Pending: "p", Delivered: "d"} }},
		{"states.pending", "missing", leased, func(l *Layout) { l.States.Pending = "" }},
		{"states.processing", "missing", leased, func(l *Layout) { l.States.Processing = "" }},
		{"states.dead", "states.pending", leased, func(l *Layout) { l.States.Dead = "new" }},
		{"states.dead", "NUL", leased, func(l *Layout) { l.States.Dead = "\x00" }},
		{"dedupe", "dedupeKey is missing", leased, func(l *Layout) { l.Columns.DedupeKey = Column{} }},
		{"dedupe[0]", "one of", leased, func(l *Layout) { l.Dedupe[0] = "payload" }},
		{"dedupe[0]", "columns.type is missing", leased, func(l *Layout) { l.Dedupe[0] = FieldType }},
		{"dedupe[1]", "twice", leased, func(l *Layout) { l.Dedupe = append(l.Dedupe, FieldTopic) }},
		{"deadLetter", "missing", lettered, func(l *Layout) { l.DeadLetter = nil }},
		{"deadLetter", "not \"deadletter\"", leased, func(l *Layout) { l.DeadLetter = lettered().DeadLetter }},
		{"deadLetter.table", "empty", lettered, func(l *Layout) { l.DeadLetter.Table = "" }},
		{"deadLetter.table", "itself", lettered, func(l *Layout) { l.DeadLetter.Table = "events" }},
		{"deadLetter.columns.reason", "missing", lettered, func(l *Layout) { l.DeadLetter.Columns.Reason = Column{} }},
		{"deadLetter.columns.payload", "eventId", lettered, func(l *Layout) { l.DeadLetter.Columns.Payload.Name = "event" }},
	} {
		layout := c.layout()
		c.change(&layout)
		err := layout.Validate()
		var refused *LayoutError
		if !errors.As(err, &refused) || !errors.Is(err, outbox.ErrInvalidLayout) {
			t.Errorf("%s (%s): got %v", c.field, c.words, err)
			continue
		}
		if refused.Field != c.field || !strings.Contains(refused.Problem, c.words) {
			t.Errorf("got %v, want %s refused with %q", err, c.field, c.words)
		}
		if _, err := layout.EmitPlan(); !errors.Is(err, outbox.ErrInvalidLayout) {
			t.Errorf("%s: EmitPlan compiled an invalid layout", c.field)
		}
	}
}
