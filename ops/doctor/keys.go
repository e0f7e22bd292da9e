package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/internal/streamsql"
)

func (t streamPatient) keys(ctx context.Context, e *exam) (string, error) {
	if _, err := e.tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return "", err
	}
	rows, _ := e.tx.Query(ctx, t.names(streamsql.Blocked)) // the rows say what failed
	var subscription, state, key, id, lastError string
	var keys, waiting int64
	var since float64
	_, err := pgx.ForEachRow(rows, []any{&subscription, &state, &keys, &waiting, &key, &id, &lastError, &since}, func() error {
		behind := map[string]string{"dead": "a dead event", "held": "a held event", "retry": "an event that is being retried"}[state]
		seen := fmt.Sprintf("subscription %s: %s behind %s, with %s behind, the first for %s; such as key %q, event %s",
			subscription, count(keys, "key waits", "keys wait"), behind, plural(waiting, "event"), span(seconds(since)), key, id)
		event := fmt.Sprintf("%s --subscription %s %s", t.flags(), shell(subscription), id)
		switch {
		case state == "dead":
			e.add(Problem, seen, fmt.Sprintf("See what it failed with: outbox show%s; then: outbox retry%[1]s", event))
		case state == "held":
			e.add(Warning, seen, "Somebody holds it. When the reason is gone: outbox release"+event)
		case seconds(since) > e.config.Patience:
			e.add(Note, seen+": "+lastError, "It is tried again by itself. If it never can succeed, the error says why.")
		}
		return nil
	})
	return "no key waits for a person", err
}
