package pgstream

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRemembered has a store deliver more than it remembers, and then nothing for a while.
func TestRemembered(t *testing.T) {
	t.Parallel()
	d := deliveries{since: time.Now()}
	recent := func(want int, wantMore bool) {
		t.Helper()
		if list, more := d.recent(); len(list) != want || more != wantMore {
			t.Errorf("%d deliveries are remembered, and more were made: %t; want %d and %t", len(list), more, want, wantMore)
		}
	}
	recent(0, false)
	for seq := range int64(rememberEvents) {
		d.add(delivery{id: uuid.New(), seq: seq, at: d.now()})
	}
	recent(rememberEvents, false)
	d.add(delivery{id: uuid.New(), seq: rememberEvents, at: d.now()})
	recent(rememberEvents, true)
	if list, _ := d.recent(); list[0].seq != rememberEvents || list[1].seq != 1 {
		t.Errorf("the oldest did not give way to the latest: %d, %d", list[0].seq, list[1].seq)
	}
	d.since = d.since.Add(-rememberFor - time.Minute)
	recent(0, false)
	d.add(delivery{at: d.now()})
	d.add(delivery{at: d.now()}) // the same
	recent(1, false)
	d.forget()
	recent(0, false)
}
