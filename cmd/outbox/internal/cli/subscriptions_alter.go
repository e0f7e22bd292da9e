package cli

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/pgstream"
)

// clearable are the flags of a definition that can be cleared.
var clearable = []string{"namespace", "topic", "type", "tenant", "to"}

func newSubscriptionsAlter(a *app) *cobra.Command {
	var from source
	var wanted pgstream.Subscription
	var tenant string
	var cleared []string
	var force bool
	cmd := &cobra.Command{
		Use:   "alter NAME",
		Short: "Change the filter, destination or policy of a subscription",
		Long: `Changes the filter, the destination or the policy of a subscription; the rest stays as it is.
--topic and --type replace the whole list. --clear removes a part of the definition: after
"--clear topic" the subscription takes events of every topic.

Running relays notice the change within ten seconds, or a third of their lease. They settle
the page that they are publishing, and continue with the new definition. No event is published
twice because of it. The cursors do not move: events that the old filter left out are not read
again. Events that wait for a retry stay. After --on-dead skip, keys that wait behind dead
events continue. After --on-dead block, events that are already dead block nothing.

A relay without --to switches to the new destination. A relay of an earlier version does not
notice the change: while one runs, --force is needed.`,
		Example: `  outbox subscriptions alter billing --topic orders --topic refunds --topic credits
  outbox subscriptions alter billing --clear topic --to file:all.jsonl`,
		Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if err := parseDefinition(&wanted, tenant); err != nil {
				return err
			}
			if policy := wanted.OnDead; flags.Changed("on-dead") && policy != pgstream.DeadSkips && policy != pgstream.DeadBlocks {
				return usagef("--on-dead is %q; choose %q or %q", policy, pgstream.DeadSkips, pgstream.DeadBlocks)
			}
			for _, name := range cleared {
				switch {
				case !slices.Contains(clearable, name):
					return usagef("--clear %s: choose from %s", name, strings.Join(clearable, ", "))
				case flags.Changed(name):
					return usagef("--clear %s and --%s: choose one", name, name)
				}
			}
			named := func(flag string) bool { return flags.Changed(flag) || slices.Contains(cleared, flag) }
			if !slices.ContainsFunc(append(slices.Clone(clearable), "on-dead"), named) {
				return usagef("say what to alter: --topic, --type, --namespace, --tenant, --to, --on-dead or --clear")
			}
			change := func(sub *pgstream.Subscription) { mend(sub, &wanted, named) }
			ctx := cmd.Context()
			return from.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				altered, err := stream.AlterSubscription(ctx, pool, args[0], change, forced(force)...)
				if err != nil {
					return err
				}
				altered.Destination = hidePassword(altered.Destination)
				return a.answer(altered, "altered subscription %s; it takes %s%s\n", printable(altered.Name), printable(takes(altered.Filter)), goesTo(altered))
			})
		},
	}
	from.databaseFlags(cmd)
	f := cmd.Flags()
	definitionFlags(f, &wanted, &tenant, "")
	listFlag(f, &cleared, "clear", "remove a `part` of the definition: "+strings.Join(clearable, ", ")+"; may be repeated")
	f.BoolVar(&force, "force", false, "alter it although a relay of an earlier version serves it")
	return cmd
}

func goesTo(sub *pgstream.Subscription) string {
	if sub.Destination == "" {
		return ", and its relays need --to"
	}
	return ", and goes to " + printable(hidePassword(sub.Destination))
}

// mend copies the named parts of a definition from another.
func mend(sub, wanted *pgstream.Subscription, named func(flag string) bool) {
	if named("namespace") {
		sub.Filter.Namespace = wanted.Filter.Namespace
	}
	if named("topic") {
		sub.Filter.Topics = wanted.Filter.Topics
	}
	if named("type") {
		sub.Filter.Types = wanted.Filter.Types
	}
	if named("tenant") {
		sub.Filter.TenantID = wanted.Filter.TenantID
	}
	if named("to") {
		sub.Destination = wanted.Destination
	}
	if named("on-dead") {
		sub.OnDead = wanted.OnDead
	}
}
