package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// stopped are the events that wait for a topic.
type stopped struct {
	subscription, topic string
	events              int64
	since               float64 // seconds
	lastError           string
}

// topics reports the closed routes that the database knows of. Only the relays know whether a whole destination is
// unavailable.
func (t streamPatient) topics(ctx context.Context, e *exam) error {
	rows, _ := e.tx.Query(ctx, `
SELECT subscription, route, count(*), extract(epoch FROM now() - min(parked_at))::float8, coalesce((array_agg(last_error ORDER BY changed_at DESC))[1], '')
FROM `+t.at("outbox_parked")+` WHERE state = 'stopped' GROUP BY subscription, route ORDER BY count(*) DESC, subscription, route LIMIT 20`) // the rows say what failed
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s stopped, err error) {
		err = row.Scan(&s.subscription, &s.topic, &s.events, &s.since, &s.lastError)
		return s, err
	})
	if err != nil {
		return err
	}
	for _, s := range list {
		since := time.Duration(s.since * float64(time.Second))
		severity := Note
		if since > e.config.Patience {
			severity = Warning
		}
		e.add(severity, fmt.Sprintf("subscription %s: topic %q takes nothing; %s for it, the first for %s: %s",
			s.subscription, s.topic, count(s.events, "event waits", "events wait"), span(since), s.lastError),
			"Mend the topic; the events then go out by themselves. See them: outbox list"+t.flags()+" --subscription "+shell(s.subscription)+" --state stopped")
	}
	e.well("no event waits for a topic that takes nothing; whether the whole destination does, /readyz of the relays says")
	return nil
}
