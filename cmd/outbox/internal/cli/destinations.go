package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
)

func newDestinations(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "destinations",
		Short: "List the destinations that --to takes",
		Long: `Lists where a relay can publish to, by URL. Each has options after a question mark, such as
?create=true, which makes topics that are missing; docs/destinations.md lists them.`,
		Example: "  outbox relay --from postgres://localhost/shop --to 'nats://localhost:4222?create=true'",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			list := dest.List()
			if a.json {
				return a.printJSON(list)
			}
			return a.columns(func(w io.Writer) {
				for _, usage := range list {
					row(w, usage.URL, usage.About)
				}
			})
		},
	}
}
