package outbox

import (
	"reflect"
	"testing"
)

// TestClosedRoutes is what a claim is told of closed topics: events go where the registry sends their type, and those
// without a topic to the default.
func TestClosedRoutes(t *testing.T) {
	t.Parallel()
	relay := &Relay{config: Config{
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
