package cli

import (
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
)

type filterFlags struct {
	ops.Filter
	aggregate, tenant, since, until string
}

func (f *filterFlags) flags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.Namespace, "namespace", "", "only events of this `namespace`")
	s.StringVar(&f.Topic, "topic", "", "only events of this `topic`")
	s.StringVar(&f.Type, "type", "", "only events of this `type`")
	s.StringVar(&f.aggregate, "aggregate", "", "only events of this aggregate, as `TYPE/ID`")
	s.StringVar(&f.Key, "key", "", "only events of this `key`")
	s.StringVar(&f.tenant, "tenant", "", "only events of this tenant's `UUID`")
	s.StringVar(&f.since, "since", "", "only events emitted at or after this `time`, such as 2030-01-31T12:00:00Z")
	s.StringVar(&f.until, "until", "", "only events emitted before this `time`")
}

// errorFlag adds --error, for commands that look at failed events.
func (f *filterFlags) errorFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Error, "error", "", "only events with this last `error`, numbers and ids written as #, as list --dead-groups shows it")
}

// parse reads the flags that are not plain text, and the ids given as arguments.
func (f *filterFlags) parse(args []string) (ops.Filter, error) {
	for _, text := range args {
		id, err := parseUUID(text)
		if err != nil || id == uuid.Nil {
			return f.Filter, usagef("%q is not the id of an event; it looks like 01890000-0000-7000-8000-000000000000", text)
		}
		f.IDs = append(f.IDs, id)
	}
	var err error
	if f.TenantID, err = parseUUID(f.tenant); err != nil {
		return f.Filter, usagef("--tenant: %w", err)
	}
	if f.aggregate != "" {
		f.AggregateType, f.AggregateID, _ = strings.Cut(f.aggregate, "/")
	}
	if f.Since, err = parseTime("since", f.since); err != nil {
		return f.Filter, err
	}
	if f.Until, err = parseTime("until", f.until); err != nil {
		return f.Filter, err
	}
	if f.since != "" && f.until != "" && !f.Since.Before(f.Until) {
		return f.Filter, usagef("--until is not after --since")
	}
	return f.Filter, nil
}
