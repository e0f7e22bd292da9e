package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
)

func newList(a *app) *cobra.Command {
	var from operated
	var filter filterFlags
	var page ops.Page
	var state string
	var groups bool
	cmd := &cobra.Command{
		Use:   "list [ID…]",
		Short: "Find events, newest first",
		Long: `Lists events, newest first, a page at a time. Each page ends with the --cursor of the next.
A search that no index serves reads a part of the events and says how far it got; --cursor
continues from there. --dead-groups groups the dead events by type and error.`,
		Example: `  outbox list --from postgres://localhost/shop --state dead
  outbox list --from postgres://localhost/shop --layout packfinderz --aggregate vendor_order/0b9c2a52-4f0c-4f0e-9d61-0f9d3c1f7a11`,
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := filter.parse(args)
			if err != nil {
				return err
			}
			wanted.State = ops.State(state)
			return from.operate(cmd.Context(), func(events *ops.Outbox) error {
				if groups {
					found, err := events.DeadGroups(cmd.Context())
					if err != nil {
						return err
					}
					return a.printGroups(found)
				}
				listing, err := events.List(cmd.Context(), wanted, page)
				if err != nil {
					return err
				}
				return a.printListing(listing)
			})
		},
	}
	from.flags(cmd)
	filter.flags(cmd)
	filter.errorFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&state, "state", "", "only events in this `state`: "+stateNames())
	pageFlags(cmd, &page, "events")
	f.BoolVar(&groups, "dead-groups", false, "group the dead events by type and error")
	return cmd
}

func pageFlags(cmd *cobra.Command, page *ops.Page, of string) {
	cmd.Flags().IntVar(&page.Size, "limit", 0, of+" per page, up to 1000 (default 50)")
	cmd.Flags().StringVar(&page.Cursor, "cursor", "", "the `cursor` that the page before ended with")
}

func stateNames() string {
	var names []string
	for _, state := range ops.States() {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

func (a *app) printListing(listing *ops.Listing) error {
	if a.json {
		return a.printJSON(listing)
	}
	err := a.columns(func(w io.Writer) {
		row(w, "ID", "STATE", "TOPIC", "TYPE", "KEY", "ATTEMPTS", "EMITTED", "ERROR")
		for i := range listing.Events {
			e := &listing.Events[i]
			row(w, e.ID, e.State, dash(e.Topic), dash(e.Type), dash(e.Key), e.Attempts, e.CreatedAt.Format(time.RFC3339), dash(short(e.LastError, 60)))
		}
	})
	if err != nil {
		return err
	}
	if listing.Note != "" {
		a.note(listing.Note)
	}
	if listing.Unindexed {
		a.note(fmt.Sprintf("no index serves this search: it read %d events, back to %s", listing.Searched, listing.SearchedTo.Format(time.RFC3339)))
	}
	if listing.Next != "" {
		a.note("more with --cursor " + listing.Next)
	}
	return nil
}

func (a *app) printGroups(groups *ops.DeadGroups) error {
	if a.json {
		return a.printJSON(groups)
	}
	err := a.columns(func(w io.Writer) {
		row(w, "COUNT", "TYPE", "OLDEST", "NEWEST", "EXAMPLE", "ERROR")
		for i := range groups.Groups {
			g := &groups.Groups[i]
			row(w, g.Count, dash(cmp.Or(g.Type, g.Topic)), g.Oldest.Format(time.RFC3339), g.Newest.Format(time.RFC3339), g.Example, dash(short(g.Error, 120)))
		}
	})
	if err == nil && groups.Cut {
		a.note(fmt.Sprintf("of the newest %d dead events; there are more", groups.Events))
	}
	return err
}

func (a *app) columns(write func(io.Writer)) error {
	table := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	write(table)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// row writes one line of a table. Errors appear when the table is flushed.
func row(w io.Writer, cells ...any) {
	words := make([]string, len(cells))
	for i, cell := range cells {
		words[i] = printable(fmt.Sprint(cell))
	}
	_, _ = fmt.Fprintln(w, strings.Join(words, "\t"))
}

// note tells a person something besides the answer.
func (a *app) note(text string) { _, _ = fmt.Fprintln(a.Err, printable(text)) }

// printable replaces characters that would control a terminal or reverse its text: they come from events and
// errors.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

func dash(text string) string { return cmp.Or(text, "-") }

func short(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
