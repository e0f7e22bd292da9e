package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// topics reports the closed routes that the database knows of. Only the relays know whether a whole destination is
// unavailable.
func (t streamPatient) topics(ctx context.Context, e *exam) (string, error) {
	rows, _ := e.tx.Query(ctx, `
SELECT subscription, route, count(*), extract(epoch FROM now() - min(parked_at))::float8, coalesce((array_agg(last_error ORDER BY changed_at DESC))[1], '')
FROM `+t.at("outbox_parked")+` WHERE state = 'stopped' GROUP BY subscription, route ORDER BY count(*) DESC, subscription, route LIMIT 20`) // the rows say what failed
	var subscription, topic, lastError string
	var events int64
	var waited float64
	_, err := pgx.ForEachRow(rows, []any{&subscription, &topic, &events, &waited, &lastError}, func() error {
		severity := Note
		if seconds(waited) > e.config.Patience {
			severity = Warning
		}
		e.add(severity, fmt.Sprintf("subscription %s: topic %q takes nothing; %s for it, the first for %s: %s",
			subscription, topic, count(events, "event waits", "events wait"), span(seconds(waited)), lastError),
			"Mend the topic; the events then go out by themselves. See them: outbox list"+t.flags()+" --subscription "+shell(subscription)+" --state stopped")
		return nil
	})
	return "no event waits for a topic that takes nothing; whether the whole destination does, /readyz of the relays says", err
}
