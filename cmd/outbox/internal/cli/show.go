package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
)

func newShow(a *app) *cobra.Command {
	var from operated
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one event",
		Long: `Shows one event: its fields, headers, payload and last error, and what happened to it, as far as
that is recorded. What people did to it comes from the audit log.`,
		Example: "  outbox show --from postgres://localhost/shop 01890000-0000-7000-8000-000000000000",
		Args:    exactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := (&filterFlags{}).parse(args)
			if err != nil {
				return err
			}
			return from.operate(cmd.Context(), func(events *ops.Outbox) error {
				event, err := events.Show(cmd.Context(), filter.IDs[0])
				if err != nil {
					return err
				}
				return a.printDetails(event)
			})
		},
	}
	from.flags(cmd)
	return cmd
}

func (a *app) printDetails(e *ops.Details) error {
	if a.json {
		return a.printJSON(e)
	}
	err := a.columns(func(w io.Writer) {
		for _, field := range []struct{ name, value string }{
			{"id", e.ID.String()}, {"state", string(e.State)}, {"namespace", e.Namespace}, {"topic", e.Topic}, {"type", e.Type},
			{"aggregate", strings.Trim(e.AggregateType+"/"+e.AggregateID, "/")}, {"key", e.Key}, {"dedupe key", e.DedupeKey},
			{"attempts", fmt.Sprintf("%d of %d", e.Attempts, e.MaxAttempts)}, {"last error", e.LastError}, {"reason", e.Reason},
			{"emitted", at(e.CreatedAt)}, {"due", at(e.NextAttemptAt)}, {"delivered", at(e.DeliveredAt)},
			{"claimed by", e.ClaimedBy}, {"claimed until", at(e.ClaimedUntil)}, {"content type", e.ContentType},
		} {
			if field.value != "" {
				row(w, field.name, field.value)
			}
		}
		if e.TenantID != [16]byte{} {
			row(w, "tenant", e.TenantID)
		}
		for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
			row(w, "header "+name, e.Headers[name])
		}
	})
	if err != nil {
		return err
	}
	if err := a.printf("\n%s\n\n", payloadText(e.Payload)); err != nil {
		return err
	}
	return a.columns(func(w io.Writer) {
		for _, m := range e.Timeline {
			row(w, at(m.At), m.What, m.Detail)
		}
	})
}

func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// payloadText formats a payload for people: indented JSON, other text as it is.
func payloadText(payload []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, payload, "", "  ") == nil {
		payload = indented.Bytes()
	}
	if !utf8.Valid(payload) {
		return fmt.Sprintf("%d bytes that are no text; --json has them as base64", len(payload))
	}
	lines := strings.Split(string(payload), "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
