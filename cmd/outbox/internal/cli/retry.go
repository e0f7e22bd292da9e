package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func newRetry(a *app) *cobra.Command {
	var from source
	var subscription string
	cmd := &cobra.Command{
		Use:   "retry ID…",
		Short: "Bring dead events back",
		Long: `Makes dead events due again, with the same ids and no attempts counted. Exits with 1 if one
of them is not dead; the others are retried all the same.`,
		Example: "  outbox retry 01890000-0000-7000-8000-000000000000 --subscription billing",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes the ids of events; see --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := make([]uuid.UUID, len(args))
			for i, text := range args {
				id, err := parseUUID(text)
				if err != nil || id == uuid.Nil {
					return usagef("%q is not the id of an event; it looks like 01890000-0000-7000-8000-000000000000", text)
				}
				ids[i] = id
			}
			return a.retry(cmd.Context(), &from, subscription, ids)
		},
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&subscription, "subscription", "", "`name` of the stream's subscription (default \"default\")")
	return cmd
}

func (a *app) retry(ctx context.Context, from *source, subscription string, ids []uuid.UUID) error {
	found, err := from.open(ctx, storeOptions{subscription: subscription})
	if err != nil {
		return err
	}
	defer found.close()
	retried, err := found.store.Retry(ctx, ids...)
	if err != nil {
		return classify(err, found.target.ifMissing())
	}
	_ = found.target.wake(ctx, found.pool) // if it fails relays poll
	if a.json {
		err = a.printJSON(map[string]any{"retried": retried})
	} else {
		err = a.printf("retrying %s\n", plural(int64(len(retried)), "event"))
	}
	if err != nil {
		return err
	}
	var others []string
	for _, id := range ids {
		if !slices.Contains(retried, id) {
			others = append(others, id.String())
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("not dead, and left alone: %s", strings.Join(others, ", "))
	}
	return nil
}
