package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
)

type eventFlags struct {
	event                     outbox.Event
	id, tenant, payload, when string
	headers                   map[string]string
	given                     bool
}

func (e *eventFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.payload, "payload", "", "the payload, or `@FILE` to read it from a file")
	f.StringVar(&e.id, "id", "", "the event's `UUID` (default: a new one)")
	f.StringVar(&e.event.Namespace, "namespace", "", "its namespace")
	f.StringVar(&e.event.Topic, "topic", "", "its topic")
	f.StringVar(&e.event.Type, "type", "", "its type")
	f.StringVar(&e.event.AggregateType, "aggregate-type", "", "the `type` of the thing it is about")
	f.StringVar(&e.event.AggregateID, "aggregate-id", "", "the `id` of the thing it is about")
	f.StringVar(&e.tenant, "tenant", "", "its tenant's `UUID`")
	f.StringVar(&e.event.DedupeKey, "dedupe-key", "", "its dedupe `key`")
	f.StringVar(&e.event.Key, "key", "", "its ordering `key`")
	f.StringToStringVar(&e.headers, "header", nil, "a header, `name=value`; may be repeated")
	f.StringVar(&e.event.ContentType, "content-type", "", "the payload's content `type`")
	f.StringVar(&e.when, "not-before", "", "`time` of the first attempt, such as 2030-01-31T12:00:00Z")
	f.IntVar(&e.event.MaxAttempts, "max-attempts", 0, "attempts after which it is dead (default: the layout's)")
}

// onlyWithPayload are the flags that describe the one event.
var onlyWithPayload = []string{
	"id", "namespace", "topic", "type", "aggregate-type", "aggregate-id", "tenant", "dedupe-key", "key", "header",
	"content-type", "not-before", "max-attempts",
}

// source returns the event of the flags, or the lines of standard input.
func (e *eventFlags) source(cmd *cobra.Command, in io.Reader) (events, error) {
	if !cmd.Flags().Changed("payload") {
		for _, name := range onlyWithPayload {
			if cmd.Flags().Changed(name) {
				return nil, usagef("--%s describes one event and needs --payload; without it events come from standard input", name)
			}
		}
		return newLines(in), nil
	}
	var err error
	if e.event.ID, err = parseUUID(e.id); err != nil {
		return nil, usagef("--id: %w", err)
	}
	if e.event.TenantID, err = parseUUID(e.tenant); err != nil {
		return nil, usagef("--tenant: %w", err)
	}
	if e.event.NotBefore, err = parseTime("not-before", e.when); err != nil {
		return nil, err
	}
	e.event.Headers = e.headers
	e.event.Payload = []byte(e.payload)
	if path, isFile := strings.CutPrefix(e.payload, "@"); isFile {
		if e.event.Payload, err = os.ReadFile(path); err != nil {
			return nil, usagef("--payload: %w", err)
		}
	}
	return e, nil
}

func (e *eventFlags) next() (outbox.Event, error) {
	if e.given {
		return outbox.Event{}, io.EOF
	}
	e.given = true
	return e.event, nil
}

func (e *eventFlags) place(int) string { return "the event" }

func parseUUID(text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%q is not a UUID", text)
	}
	return id, nil
}
