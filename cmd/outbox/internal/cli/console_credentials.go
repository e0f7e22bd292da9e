package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/admin"
)

// roleFlag adds --role.
func roleFlag(cmd *cobra.Command, role *string) {
	cmd.Flags().StringVar(role, "role", admin.Viewer.String(), "what they may do: viewer or operator")
}

func newConsoleUser(a *app) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:     "user NAME",
		Short:   "Make the line of a user, for --credentials",
		Long:    `Reads a password from the standard input, one line, and prints the line for the credentials file.`,
		Example: "  outbox console user ann --role operator < password.txt >> console.users",
		Args:    exactArgs("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			may, err := admin.ParseRole(role)
			if err != nil {
				return usagef("--role: %w", err)
			}
			input := bufio.NewScanner(a.In)
			if !input.Scan() && input.Err() != nil {
				return fmt.Errorf("read the password: %w", input.Err())
			}
			line, err := admin.NewUser(args[0], may, strings.TrimSuffix(input.Text(), "\r"))
			if err != nil {
				return &usageError{err}
			}
			return a.printf("%s\n", line)
		},
	}
	roleFlag(cmd, &role)
	return cmd
}

func newConsoleToken(a *app) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "token NAME",
		Short: "Make a bearer token for the API, and its line for --credentials",
		Long: `Prints the line for the credentials file to the standard output, and the token itself, which
is kept nowhere, to the standard error.`,
		Example: "  outbox console token ci --role viewer >> console.users",
		Args:    exactArgs("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			may, err := admin.ParseRole(role)
			if err != nil {
				return usagef("--role: %w", err)
			}
			secret, line, err := admin.NewToken(args[0], may)
			if err != nil {
				return &usageError{err}
			}
			if a.json {
				return a.printJSON(map[string]string{"token": secret, "line": line})
			}
			if _, err := fmt.Fprintf(a.Err, "the token is %s\n", secret); err != nil {
				return fmt.Errorf("write the token: %w", err)
			}
			return a.printf("%s\n", line)
		},
	}
	roleFlag(cmd, &role)
	return cmd
}
