package layouts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, layout := range []layouts.Layout{layouttest.Leased(), layouttest.Lettered()} {
		if err := layout.Validate(); err != nil {
			t.Fatalf("a valid layout was refused: %v", err)
		}
	}
	long := strings.Repeat("é", 32)
	for _, c := range []struct {
		field, words string
		layout       func() layouts.Layout
		change       func(*layouts.Layout)
	}{
		{"name", "empty", layouttest.Leased, func(l *layouts.Layout) { l.Name = "" }},
		{"schema", "NUL", layouttest.Leased, func(l *layouts.Layout) { l.Schema = "a\x00b" }},
		{"table", "empty", layouttest.Leased, func(l *layouts.Layout) { l.Table = "" }},
		{"table", "64 bytes", layouttest.Leased, func(l *layouts.Layout) { l.Table = long }},
		{"table", "UTF-8", layouttest.Leased, func(l *layouts.Layout) { l.Table = "\xff" }},
		{"hold", "lease, defer, rowlock", layouttest.Leased, func(l *layouts.Layout) { l.Hold = "" }},
		{"done", "status, timestamp", layouttest.Leased, func(l *layouts.Layout) { l.Done = "deleted" }},
		{"count", "claim, failure", layouttest.Leased, func(l *layouts.Layout) { l.Count = "never" }},
		{"count", "rowlock", layouttest.Lettered, func(l *layouts.Layout) { l.Count = layouts.CountOnClaim }},
		{"terminal", "status, deadletter", layouttest.Leased, func(l *layouts.Layout) { l.Terminal = "shrug" }},
		{"terminal", "no status", layouttest.Lettered, func(l *layouts.Layout) { l.Terminal = layouts.TerminalStatus }},
		{"maxAttempts", "at least 1", layouttest.Leased, func(l *layouts.Layout) { l.MaxAttempts = 0 }},
		{"columns.id", "missing", layouttest.Leased, func(l *layouts.Layout) { l.Columns.ID = layouts.Column{} }},
		{"columns.payload", "missing", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Payload = layouts.Column{} }},
		{"columns.attempts", "missing", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Attempts = layouts.Column{} }},
		{"columns.createdAt", "missing", layouttest.Leased, func(l *layouts.Layout) { l.Columns.CreatedAt = layouts.Column{} }},
		{"columns.lockedBy", "lease", layouttest.Leased, func(l *layouts.Layout) { l.Columns.LockedBy = layouts.Column{} }},
		{"columns.lockedUntil", "lease", layouttest.Leased, func(l *layouts.Layout) { l.Columns.LockedUntil = layouts.Column{} }},
		{"columns.nextAttemptAt", "defer", layouttest.Leased, func(l *layouts.Layout) { l.Hold, l.Columns.NextAttemptAt = layouts.HoldDefer, layouts.Column{} }},
		{"columns.lockedBy", "not \"lease\"", layouttest.Leased, func(l *layouts.Layout) { l.Hold = layouts.HoldDefer }},
		{"columns.status", "missing", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Status = layouts.Column{} }},
		{"columns.status", "not \"status\"", layouttest.Lettered, func(l *layouts.Layout) { l.Columns.Status = layouts.Column{Name: "s"} }},
		{"columns.deliveredAt", "missing", layouttest.Lettered, func(l *layouts.Layout) { l.Columns.DeliveredAt = layouts.Column{} }},
		{"columns.attempts", "columns.payload", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Attempts.Name = "body" }},
		{"columns.topic", "empty", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic = layouts.Column{NotNull: true} }},
		{"columns.topic", "NUL", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic.Name = "a\x00" }},
		{"columns.topic", "64 bytes", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic.Name = long }},
		{"columns.topic", "both", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic.Type, l.Columns.Topic.Enum = "text", "e" }},
		{"columns.topic", "enum", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic.Enum = "\x00" }},
		{"columns.topic", "one of text", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic.Type = "integer); DROP TABLE x" }},
		{"columns.topic", "negative", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Topic.MaxLength = -1 }},
		{"columns.payload", "bytea", layouttest.Leased, func(l *layouts.Layout) { l.Columns.Payload.Type = "xml" }},
		{"states", "missing", layouttest.Leased, func(l *layouts.Layout) { l.States = nil }},
		{"states", "not \"status\"", layouttest.Lettered, func(l *layouts.Layout) { l.States = &layouts.States{Pending: "p", Delivered: "d"} }},
		{"states.pending", "missing", layouttest.Leased, func(l *layouts.Layout) { l.States.Pending = "" }},
		{"states.processing", "missing", layouttest.Leased, func(l *layouts.Layout) { l.States.Processing = "" }},
		{"states.dead", "states.pending", layouttest.Leased, func(l *layouts.Layout) { l.States.Dead = "new" }},
		{"states.dead", "NUL", layouttest.Leased, func(l *layouts.Layout) { l.States.Dead = "\x00" }},
		{"dedupe", "dedupeKey is missing", layouttest.Leased, func(l *layouts.Layout) { l.Columns.DedupeKey = layouts.Column{} }},
		{"dedupe[0]", "one of", layouttest.Leased, func(l *layouts.Layout) { l.Dedupe[0] = "payload" }},
		{"dedupe[0]", "columns.type is missing", layouttest.Leased, func(l *layouts.Layout) { l.Dedupe[0] = layouts.FieldType }},
		{"dedupe[1]", "twice", layouttest.Leased, func(l *layouts.Layout) { l.Dedupe = append(l.Dedupe, layouts.FieldTopic) }},
		{"deadLetter", "missing", layouttest.Lettered, func(l *layouts.Layout) { l.DeadLetter = nil }},
		{"deadLetter", "not \"deadletter\"", layouttest.Leased, func(l *layouts.Layout) { l.DeadLetter = layouttest.Lettered().DeadLetter }},
		{"deadLetter.table", "empty", layouttest.Lettered, func(l *layouts.Layout) { l.DeadLetter.Table = "" }},
		{"deadLetter.table", "itself", layouttest.Lettered, func(l *layouts.Layout) { l.DeadLetter.Table = "events" }},
		{"deadLetter.columns.reason", "missing", layouttest.Lettered, func(l *layouts.Layout) { l.DeadLetter.Columns.Reason = layouts.Column{} }},
		{"deadLetter.columns.payload", "eventId", layouttest.Lettered, func(l *layouts.Layout) { l.DeadLetter.Columns.Payload.Name = "event" }},
	} {
		layout := c.layout()
		c.change(&layout)
		err := layout.Validate()
		var refused *layouts.LayoutError
		if !errors.As(err, &refused) || !errors.Is(err, outbox.ErrInvalidLayout) {
			t.Errorf("%s (%s): got %v", c.field, c.words, err)
			continue
		}
		if refused.Field != c.field || !strings.Contains(refused.Problem, c.words) {
			t.Errorf("got %v, want %s refused with %q", err, c.field, c.words)
		}
		if _, err := outboxpgx.New(layout, outbox.EmitConfig{}); !errors.Is(err, outbox.ErrInvalidLayout) {
			t.Errorf("%s: an emitter took an invalid layout", c.field)
		}
	}
}
