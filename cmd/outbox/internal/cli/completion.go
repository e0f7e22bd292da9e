package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
)

// completeFlags teaches the shell the values of flags that have few, in every command.
func completeFlags(root *cobra.Command) {
	var kinds []string
	for _, usage := range dest.List() {
		scheme, _, _ := strings.Cut(usage.URL, ":")
		kinds = append(kinds, scheme+":")
	}
	values := map[string]func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective){
		"layout": cobra.FixedCompletions(strings.Split(shippedNames(), ", "), cobra.ShellCompDirectiveDefault), // or a file
		"to":     cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoSpace),
		"state":  cobra.FixedCompletions(strings.Split(stateNames(), ", "), cobra.ShellCompDirectiveNoFileComp),
	}
	for _, cmd := range root.Commands() {
		for name, complete := range values {
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only for a flag that is not there
			}
		}
		completeFlags(cmd)
	}
}
