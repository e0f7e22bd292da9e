package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/pgstream"
)

func newSubscriptions(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subscriptions",
		Short: "Make, alter, list or drop the subscriptions of a stream",
		Long: `A subscription is an independent reader of a stream, with its own cursors, failures and relays.
Every new stream has one, called default.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to do: outbox subscriptions create, alter, list or drop")
		},
	}
	cmd.AddCommand(newSubscriptionsCreate(a), newSubscriptionsAlter(a), newSubscriptionsList(a), newSubscriptionsDrop(a))
	return cmd
}

// onStream runs work on the stream that the flags name.
func (s *source) onStream(ctx context.Context, work func(pgstream.Stream, *pgxpool.Pool) error) error {
	s.layout = pgstream.LayoutName
	return s.connected(ctx, 2, func(_ place, pool *pgxpool.Pool) error {
		stream := pgstream.Stream{Schema: s.schema}
		if err := stream.CheckSchema(ctx, pool); err != nil {
			return err
		}
		return work(stream, pool)
	})
}

func newSubscriptionsCreate(a *app) *cobra.Command {
	var from source
	var sub pgstream.Subscription
	var oldest, now bool
	var tenant string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a subscription",
		Long: `Makes a subscription. It delivers the events that match its filter, from the oldest event that
the stream still has or, with --from-now, from now on. It stores the filter and the
destination, so that "outbox relay --subscription NAME" needs no other flags.

A name begins with a letter or a digit and has up to 100 letters, digits, '_', '-' and '.'.`,
		Example: "  outbox subscriptions create billing --from-now --topic orders --topic refunds --to file:billing.jsonl",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if oldest && now {
				return usagef("--from-oldest and --from-now: choose one")
			}
			if err := parseDefinition(&sub, tenant); err != nil {
				return err
			}
			sub.Name = args[0]
			if err := sub.Validate(); err != nil {
				return &usageError{err}
			}
			start, begins := pgstream.StartOldest, "at the oldest event"
			if now {
				start, begins = pgstream.StartNow, "now"
			}
			ctx := cmd.Context()
			return from.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				if err := stream.CreateSubscription(ctx, pool, sub, start); err != nil {
					return err
				}
				if !a.json {
					return a.printf("made subscription %s; it begins %s, takes %s%s\n", sub.Name, begins, printable(takes(sub.Filter)), goesTo(&sub))
				}
				made, err := stream.FindSubscription(ctx, pool, sub.Name)
				if err != nil {
					return err
				}
				made.Destination = hidePassword(made.Destination)
				return a.printJSON(made)
			})
		},
	}
	from.databaseFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&oldest, "from-oldest", false, "begin at the oldest event that the stream still has (the default)")
	f.BoolVar(&now, "from-now", false, "deliver only events that are committed from now on")
	definitionFlags(f, &sub, &tenant, pgstream.DeadSkips)
	return cmd
}

// definitionFlags adds the flags that define a subscription; onDead is the default policy.
func definitionFlags(f *pflag.FlagSet, sub *pgstream.Subscription, tenant *string, onDead pgstream.OnDead) {
	f.StringVar(&sub.Filter.Namespace, "namespace", "", "only events of this `namespace`")
	listFlag(f, &sub.Filter.Topics, "topic", "only events of this `topic`; may be repeated")
	listFlag(f, &sub.Filter.Types, "type", "only events of this `type`; may be repeated")
	f.StringVar(tenant, "tenant", "", "only events of this tenant's `UUID`")
	f.StringVar(&sub.Destination, "to", "", "destination `URL` of its relays, unless they have --to")
	f.StringVar((*string)(&sub.OnDead), "on-dead", string(onDead),
		"what a dead event does to the later events of its key: skip lets them pass, block stops them until it is retried")
}

// parseDefinition checks the flags of a definition that are not plain text.
func parseDefinition(sub *pgstream.Subscription, tenant string) (err error) {
	if sub.Filter.TenantID, err = parseUUID(tenant); err != nil {
		return usagef("--tenant: %w", err)
	}
	if sub.Destination == "" {
		return nil
	}
	return asUsage(dest.Check(sub.Destination))
}

func newSubscriptionsList(a *app) *cobra.Command {
	var from source
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the subscriptions",
		Long: `Lists the subscriptions. Making one that is marked as unfinished was interrupted: drop it, and
make it again.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return from.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				list, err := stream.Subscriptions(ctx, pool)
				if err != nil {
					return err
				}
				return a.printSubscriptions(list)
			})
		},
	}
	from.databaseFlags(cmd)
	return cmd
}

func (a *app) printSubscriptions(list []pgstream.Subscription) error {
	for i := range list {
		list[i].Destination = hidePassword(list[i].Destination)
	}
	if a.json {
		return printEach(a, list, nil)
	}
	return a.columns(func(w io.Writer) {
		row(w, "NAME", "TAKES", "DESTINATION", "A DEAD EVENT", "MADE")
		for i := range list {
			sub := &list[i]
			onDead := "is skipped"
			if sub.OnDead == pgstream.DeadBlocks {
				onDead = "blocks its key"
			}
			made := sub.CreatedAt.Format(time.RFC3339)
			if sub.HalfMade {
				made = "unfinished; drop it"
			}
			row(w, sub.Name, takes(sub.Filter), dash(sub.Destination), onDead, made)
		}
	})
}

// hidePassword keeps the password of a broker out of lists.
func hidePassword(destination string) string {
	parsed, err := url.Parse(destination)
	if err != nil || parsed.User == nil {
		return destination
	}
	return parsed.Redacted()
}

func takes(filter pgstream.Filter) string {
	var parts []string
	if filter.Namespace != "" {
		parts = append(parts, "namespace "+filter.Namespace)
	}
	if len(filter.Topics) > 0 {
		parts = append(parts, "topic "+anyOf(filter.Topics))
	}
	if len(filter.Types) > 0 {
		parts = append(parts, "type "+anyOf(filter.Types))
	}
	if filter.TenantID != uuid.Nil {
		parts = append(parts, "tenant "+filter.TenantID.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "everything")
}

// anyOf joins names, and quotes one that could be taken for several.
func anyOf(names []string) string {
	words := slices.Clone(names)
	for i, name := range words {
		if strings.ContainsAny(name, `, "'`) {
			words[i] = strconv.Quote(name)
		}
	}
	return strings.Join(words, " or ")
}

func newSubscriptionsDrop(a *app) *cobra.Command {
	var from source
	var force bool
	cmd := &cobra.Command{
		Use:   "drop NAME",
		Short: "Drop a subscription",
		Long: `Drops a subscription, its cursors and its parked events. The stream's events and the other
subscriptions stay. Without --force it refuses if a relay serves the subscription, or if the
subscription has undelivered or dead events. Relays of a dropped subscription stop.`,
		Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			return from.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				if !force {
					if err := inUse(ctx, stream, pool, name); err != nil {
						return err
					}
				}
				if err := stream.DropSubscription(ctx, pool, name, forced(force)...); err != nil {
					return err
				}
				return a.answer(map[string]string{"dropped": name}, "dropped subscription %s\n", printable(name))
			})
		},
	}
	from.databaseFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "drop it even if it is served or has events")
	return cmd
}

func forced(force bool) []pgstream.SubscriptionOption {
	if !force {
		return nil
	}
	return []pgstream.SubscriptionOption{pgstream.Forced()}
}

// inUse returns why a subscription should be kept, or nil.
func inUse(ctx context.Context, stream pgstream.Stream, pool *pgxpool.Pool, name string) error {
	lag, err := stream.Lag(ctx, pool, name)
	if errors.Is(err, pgstream.ErrNoSubscription) || errors.Is(err, pgstream.ErrHalfMade) {
		return nil // there is nothing to lose
	}
	if err != nil {
		return err
	}
	if len(lag.Relays) > 0 {
		return usagef("subscription %q is served by a relay, on %s; stop it, or use --force", name, lag.Relays[0].Host)
	}
	events := int64(0)
	for i := range lag.Shards {
		events += lag.Shards[i].Events
	}
	for _, parked := range lag.Parked {
		events += parked
	}
	if events > 0 {
		return usagef("subscription %q has %s undelivered; use --force to drop it all the same", name, plural(events, "event"))
	}
	return nil
}
