package outbox

import (
	"reflect"
	"testing"
	"time"
)

// TestClosedRoutes checks what a claim is told of closed topics: events go where the registry sends their type, and
// those without a topic to the default.
func TestClosedRoutes(t *testing.T) {
	t.Parallel()
	relay := &Relay{config: RelayConfig{
		Registry:     Registry{"paid": {Topic: "billing"}, "billed": {Topic: "billing"}, "sent": {Topic: "parcels"}, "noted": {}},
		DefaultTopic: "rest",
	}}
	for _, c := range []struct {
		closed []string
		want   ClosedRoutes
	}{
		{nil, ClosedRoutes{}},
		{[]string{"billing"}, ClosedRoutes{Topics: []string{"billing"}, Types: []string{"billed", "paid"}, OtherTypes: []string{"sent"}}},
		{[]string{"rest"}, ClosedRoutes{Topics: []string{"rest", ""}, OtherTypes: []string{"billed", "paid", "sent"}}},
	} {
		if got := relay.closedRoutes(c.closed); !reflect.DeepEqual(got, c.want) {
			t.Errorf("with %q closed: %+v, want %+v", c.closed, got, c.want)
		}
	}
}

// TestRouteThatComesAndGoes has a route that opens for moments only: that does not make its pings more frequent.
func TestRouteThatComesAndGoes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &route{since: now.Add(-time.Hour)}
	var pauses []time.Duration
	for range 5 {
		r.close(now, errNo)
		pauses = append(pauses, r.retryAt.Sub(now))
		now = r.retryAt
		r.answered(now, nil)
		r.close(now, errNo) // the trial fails once
		now = r.retryAt
		r.answered(now, nil)
		r.open(now)
		now = now.Add(time.Second)
	}
	if last := pauses[len(pauses)-1]; last < pingMax/2 {
		t.Errorf("the pauses are %v; the last should be near %s", pauses, pingMax)
	}
	r.open(now)
	now = now.Add(time.Hour)
	if r.close(now, errNo); r.retryAt.Sub(now) > pingFirst {
		t.Errorf("after an hour of peace it is looked at after %s, want %s at most", r.retryAt.Sub(now), pingFirst)
	}
}
