package cli

import (
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/layoutfile"
	"github.com/packfinderz/outbox/layouts"
)

func newLayouts(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "layouts [NAME]",
		Short: "List the shipped layouts, or print one as YAML",
		Long: `Without a name, lists the shipped layouts. With one, prints it as YAML (or JSON with
--json): the start of a layout for a table of your own, to be used as --layout FILE.`,
		Example: "  outbox layouts\n  outbox layouts modkit > mine.yaml",
		Args:    maxArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.printLayout(args[0])
			}
			return a.listLayouts()
		},
	}
}

func (a *app) printLayout(name string) error {
	layout, _, err := (&source{layout: name}).resolve()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(layout)
	}
	doc, err := layoutfile.Format(layout)
	if err != nil {
		return err
	}
	return a.printf("%s", doc)
}

func (a *app) listLayouts() error {
	for _, shipped := range layouts.All() {
		layout := shipped.Layout
		var err error
		if a.json {
			err = a.printJSON(map[string]string{
				"name": layout.Name, "table": layout.Table, "hold": string(layout.Hold), "summary": shipped.Summary,
			})
		} else {
			err = a.printf("%-12s %-22s %s\n", layout.Name, layout.Table, shipped.Summary)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
