package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/pgstream"
)

// streamWaiting is what waits for a subscription; see streamsql.Waiting.
type streamWaiting struct {
	subscription                  string
	relays, closed, expired       int64
	unreadFor, dueFor, expiredFor float64
}

// waiting reads what waits for each subscription. Later statements of the transaction are planned by indexes.
func (t streamPatient) waiting(ctx context.Context, e *exam) ([]streamWaiting, error) {
	if _, err := e.tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return nil, err
	}
	subscriptions, err := t.stream.Subscriptions(ctx, e.tx)
	if err != nil {
		return nil, err
	}
	subscriptions = slices.DeleteFunc(subscriptions, func(sub pgstream.Subscription) bool { return sub.HalfMade })
	list := make([]streamWaiting, len(subscriptions))
	for i := range subscriptions {
		w := &list[i]
		w.subscription = subscriptions[i].Name
		conditions, args := streamsql.Filter(subscriptions[i].Filter).Conditions(2)
		// DescribeExec asks for the parameters' types whatever the pool's mode: a tenant is sent as bytes.
		args = append([]any{pgx.QueryExecModeDescribeExec, w.subscription}, args...)
		err := e.tx.QueryRow(ctx, t.names(fmt.Sprintf(streamsql.Waiting, conditions)), args...).
			Scan(&w.relays, &w.closed, &w.unreadFor, &w.dueFor, &w.expired, &w.expiredFor)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (t streamPatient) relays(ctx context.Context, e *exam) (string, error) {
	list, err := t.waiting(ctx, e)
	if err != nil {
		return "", err
	}
	var relays int64
	for i := range list {
		w := &list[i]
		relays += w.relays
		waits := seconds(max(w.unreadFor, w.dueFor))
		if waits <= e.config.Patience {
			continue
		}
		seen := fmt.Sprintf("subscription %s: the first event has waited for %s", w.subscription, span(waits))
		there := count(w.relays, "relay is", "relays are")
		switch {
		case w.relays > 0 && w.closed == w.relays:
			e.add(Warning, fmt.Sprintf("%s; %s there, waiting for the destination", seen, there),
				"The relay's log and its /readyz say why the destination takes nothing. Publishing goes on by itself.")
		case w.relays > 0:
			e.add(Note, fmt.Sprintf("%s; %s at work", seen, there),
				"If it does not get better, run more relays, or look at what the destination takes.")
		default:
			e.add(Problem, seen+", and no relay serves it", fmt.Sprintf("Run a relay: outbox relay%[1]s --subscription %[2]s. "+
				"If nobody wants its events any more: outbox subscriptions drop%[1]s --force %[2]s.", t.flags(), shell(w.subscription)))
		}
	}
	return fmt.Sprintf("%s alive; no event has waited for longer than %s", count(relays, "relay is", "relays are"), span(e.config.Patience)), nil
}

func (t streamPatient) stuck(ctx context.Context, e *exam) (string, error) {
	list, err := t.waiting(ctx, e)
	if err != nil {
		return "", err
	}
	for i := range list {
		w := &list[i]
		if expired := seconds(w.expiredFor); expired > e.config.Patience {
			e.add(Problem, fmt.Sprintf("subscription %s: the lease of %s has been over for up to %s: a relay died, and no other took over",
				w.subscription, plural(w.expired, "shard"), span(expired)),
				fmt.Sprintf("Run a relay: outbox relay%s --subscription %s. It begins where the cursors are.", t.flags(), shell(w.subscription)))
		}
	}
	return "no shard is held past its lease", nil
}
