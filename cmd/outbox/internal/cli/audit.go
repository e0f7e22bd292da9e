package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
)

func newAudit(a *app) *cobra.Command {
	var from operated
	var page ops.Page
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who retried, replayed, held, released or purged events",
		Long: `Lists what people did to the events of a table or a subscription, newest first. The log needs
its own tables: outbox migrate up --audit makes them. An entry that stays "running" was cut
off; its number of events is right all the same.`,
		Example: "  outbox audit --from postgres://localhost/shop",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return from.operate(cmd.Context(), func(events *ops.Outbox) error {
				log, err := events.Audit(cmd.Context(), page)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(log)
				}
				if log.Missing != "" {
					a.note("nothing is audited: " + log.Missing)
				}
				return a.printAudit(log)
			})
		},
	}
	from.flags(cmd)
	pageFlags(cmd, &page, "entries")
	return cmd
}

func (a *app) printAudit(log *audit.Page) error {
	err := a.columns(func(w io.Writer) {
		row(w, "ENTRY", "STARTED", "WHO", "WHAT", "EVENTS", "OUTCOME", "REQUEST")
		for i := range log.Entries {
			e := &log.Entries[i]
			row(w, e.ID, e.StartedAt.Format(time.RFC3339), e.Actor, e.Operation, e.Events, e.Outcome, short(string(e.Request), 120))
		}
	})
	if err == nil && log.Next != "" {
		a.note("more with --cursor " + log.Next)
	}
	return err
}
