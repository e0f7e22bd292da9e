package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/demo"
)

func newDemo(a *app) *cobra.Command {
	config := demo.Config{Out: a.Out}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole road of an event, on a private PostgreSQL",
		Long: `Starts a private PostgreSQL in a temporary folder, a shop that writes orders and events
in one transaction, and a relay that delivers them to the screen. Ctrl-C ends all of it
and leaves nothing behind.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config.Rate < 1 || config.Rate > 1000 {
				return usagef("--rate is %d; it must be between 1 and 1000", config.Rate)
			}
			return demo.Run(cmd.Context(), config)
		},
	}
	cmd.Flags().IntVar(&config.Rate, "rate", 5, "orders per second")
	cmd.Flags().DurationVar(&config.For, "for", 0*time.Second, "how long (default: until Ctrl-C)")
	return cmd
}
