package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/packfinderz/outbox/pgstream"
)

// subscriptions looks for unfinished ones. They hold no events, but their creator believes that they exist. One
// that is being created right now does not count.
func (t streamPatient) subscriptions(ctx context.Context, e *exam) (string, error) {
	list, err := t.stream.Subscriptions(ctx, e.tx)
	if err != nil {
		return "", err
	}
	var now time.Time
	if err := e.tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return "", err
	}
	var made int64
	for i := range list {
		name := list[i].Name
		switch age := now.Sub(list[i].CreatedAt); {
		case !list[i].HalfMade:
			made++
		case age > e.config.Patience:
			e.add(Warning, fmt.Sprintf("subscription %s is unfinished: making it was interrupted %s ago, and it takes nothing", name, span(age)),
				fmt.Sprintf("Drop it, and make it again: outbox subscriptions drop%s -- %s", t.flags(), shell(name)))
		}
	}
	if made == 0 {
		e.add(Problem, "there is no subscription: events are delivered to nobody, and kept for nobody",
			fmt.Sprintf("Make one; it begins at the oldest event: outbox subscriptions create%s default", t.flags()))
	}
	for i := range list[:made] { // the unfinished are last
		if name := list[i].Name; pgstream.CheckSubscriptionName(name) != nil {
			e.add(Note, fmt.Sprintf("subscription %s has a name that is refused today; it works, but has to be quoted in commands and addresses", name),
				"When it is convenient, make one of another name in its place: outbox subscriptions create --help says which names there can be")
		}
	}
	return plural(made, "subscription") + ", none of them unfinished", nil
}
