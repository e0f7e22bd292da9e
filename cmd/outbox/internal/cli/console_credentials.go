package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/admin"
)

func newConsoleUser(a *app) *cobra.Command {
	return credentialCommand(&cobra.Command{
		Use:     "user NAME",
		Short:   "Make the line of a user, for --credentials",
		Long:    `Reads a password from the standard input, one line, and prints the line for the credentials file.`,
		Example: "  outbox console user ann --role operator < password.txt >> console.users",
	}, func(name string, role admin.Role) error {
		input := bufio.NewScanner(a.In)
		if !input.Scan() && input.Err() != nil {
			return fmt.Errorf("read the password: %w", input.Err())
		}
		line, err := admin.NewUser(name, role, strings.TrimSuffix(input.Text(), "\r"))
		if err != nil {
			return &usageError{err}
		}
		return a.printf("%s\n", line)
	})
}

func newConsoleToken(a *app) *cobra.Command {
	return credentialCommand(&cobra.Command{
		Use:   "token NAME",
		Short: "Make a bearer token for the API, and its line for --credentials",
		Long: `Prints the line for the credentials file to the standard output, and the token itself, which
is kept nowhere, to the standard error.`,
		Example: "  outbox console token ci --role viewer >> console.users",
	}, func(name string, role admin.Role) error {
		secret, line, err := admin.NewToken(name, role)
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
	})
}

// credentialCommand completes a command that makes credentials for a name and a role.
func credentialCommand(cmd *cobra.Command, create func(name string, role admin.Role) error) *cobra.Command {
	var role string
	cmd.Args = exactArgs("NAME")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		may, err := admin.ParseRole(role)
		if err != nil {
			return usagef("--role: %w", err)
		}
		return create(args[0], may)
	}
	cmd.Flags().StringVar(&role, "role", admin.Viewer.String(), "what they may do: viewer or operator")
	return cmd
}
