package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/packfinderz/outbox/internal/streamsql"
)

// recentPromotion is how long a promotion is reported: people may still ask where a message came from.
const recentPromotion = 7 * 24 * time.Hour

func (t streamPatient) promotion(ctx context.Context, e *exam) (string, error) {
	var at *time.Time
	var from, to, relays, repeated, orphaned int64
	var forgets bool
	if err := e.tx.QueryRow(ctx, t.names(streamsql.Promotion)).Scan(&at, &from, &to, &relays, &repeated, &orphaned, &forgets); err != nil {
		return "", err
	}
	if to == 0 {
		return "no standby was promoted since the stream was made", nil
	}
	timelines := fmt.Sprintf("(timeline %d to %d)", from, to)
	if at == nil {
		e.add(Warning, "a standby was promoted "+timelines+", and no relay has connected since: messages may have been delivered whose "+
			"events are not here, and events that were settled in the last moments are published again",
			"Start the relays; those that were connected before count such deliveries when they come back.")
		return "", nil
	}
	var now time.Time
	if err := e.tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return "", err
	}
	if now.Sub(*at) > recentPromotion {
		return fmt.Sprintf("the last promotion of a standby was %s ago", span(now.Sub(*at))), nil
	}
	seen := fmt.Sprintf("a standby was promoted %s, noticed at %s: ", timelines, at.UTC().Format(time.RFC3339))
	more := ""
	if forgets {
		more = " (it remembers the last 65,536 only)"
	}
	switch {
	case relays == 0:
		e.add(Warning, seen+"no relay outlived it, so that nobody knows which deliveries it lacks: messages may have been delivered whose "+
			"events are not here, and events that were settled in the last moments are published again",
			"Compare the consumers' last messages with the stream; they know events that come twice by their ids.")
	case orphaned > 0:
		e.add(Warning, seen+fmt.Sprintf("%s%s had delivered at least %s that this server does not have, and %s that it has not settled and "+
			"publishes again", plural(relays, "relay"), more, plural(orphaned, "event"), plural(repeated, "event")),
			"The business rows of what is missing are lost, too. Correct them at the consumers, and make a standby synchronous: see the check standby.")
	default:
		e.add(Note, seen+fmt.Sprintf("every event that %s%s had delivered is here; %s had not been settled here, and had to be published again",
			plural(relays, "relay"), more, plural(repeated, "event")), "")
	}
	return "", nil
}
