package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/layouts/layoutfile"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

func newLayouts(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "layouts [NAME]",
		Short: "List the shipped layouts, or print one as YAML",
		Long: `Without a name, lists the shipped layouts. With one, prints it as YAML (or JSON with
--json): the start of a layout for a table of your own, to be used as --layout FILE.
Layout standard is the stream, which has no such file.`,
		Example: "  outbox layouts\n  outbox layouts modkit > mine.yaml",
		Args:    atMostOneArg,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.printLayout(args[0])
			}
			return printEach(a, listedLayouts(), func(l listed) string { return fmt.Sprintf("%-12s %-22s %s", l.Name, l.Table, l.Summary) })
		},
	}
}

func (a *app) printLayout(name string) error {
	found, err := (&source{layout: name}).resolve()
	if err != nil {
		return err
	}
	table, ok := found.(queueTable)
	if !ok {
		return a.printStandard()
	}
	doc, err := layoutfile.Format(table.Layout)
	if err != nil {
		return err
	}
	return a.answer(table.Layout, "%s", doc)
}

// standard describes the stream, which has no layout file.
var standard = listed{
	Name: pgstream.LayoutName, Table: "outbox_stream", Hold: "shards",
	Summary: "the stream, what a new team takes: append-only, in order per key, subscriptions",
}

func (a *app) printStandard() error {
	return a.answer(standard, `%s is the stream: a log that is only appended to, read by the cursors of its subscriptions.
Events of a key arrive in the order of their commits. Its tables (outbox_stream,
outbox_subscriptions, outbox_shards, outbox_parked and some beside them) are made by
"outbox migrate up" and have fixed names, so there is no layout to print or to edit;
--schema places them. It is the default of --layout.
`, standard.Name)
}

type listed struct {
	Name    string `json:"name"`
	Table   string `json:"table"`
	Hold    string `json:"hold"`
	Summary string `json:"summary"`
}

func listedLayouts() []listed {
	list := []listed{standard}
	for _, shipped := range shipped.All() {
		list = append(list, listed{shipped.Layout.Name, shipped.Layout.Table, string(shipped.Layout.Hold), shipped.Summary})
	}
	return list
}
