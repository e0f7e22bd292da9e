package pgstream

import (
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

const (
	// rememberEvents is how many deliveries a store remembers, the latest: two megabytes.
	rememberEvents = 1 << 16
	// rememberFor is how long it remembers them. What is older has long been copied to every standby that is worth
	// promoting, and may have been purged.
	rememberFor = 10 * time.Minute
)

// delivery is an event that was delivered, and settled, or tried to be.
type delivery struct {
	id     uuid.UUID
	seq    int64
	at     int32 // seconds since the store was opened
	shard  int16
	parked bool
}

// deliveries are the latest of a store, in a ring. A standby that is promoted may lack what was
// settled last, or the events themselves: nobody but the relay that delivered them can tell.
type deliveries struct {
	since time.Time
	ring  []delivery
	next  int // where the next one goes, once the ring is full
	// gave is set when deliveries had to give way, and gaveAt when the last of them was made, as at of
	// a delivery.
	gave   bool
	gaveAt int32
}

func (d *deliveries) now() int32 { return int32(time.Since(d.since) / time.Second) }

// add remembers a delivery.
func (d *deliveries) add(one delivery) {
	if len(d.ring) < rememberEvents {
		d.ring = append(d.ring, one)
		return
	}
	d.gave, d.gaveAt = true, d.ring[d.next].at
	d.ring[d.next] = one
	d.next = (d.next + 1) % rememberEvents
}

// addPage remembers what was delivered of a page.
func (d *deliveries) addPage(p *part, outcomes []outbox.Outcome) {
	at, j := d.now(), 0
	for i := range p.page.places {
		if p.held != nil && p.held[i] {
			continue
		}
		if outcomes[j].Kind == outbox.Delivered {
			d.add(delivery{id: p.page.messages[i].ID, seq: p.page.places[i].seq, at: at, shard: p.shard.number})
		}
		j++
	}
}

// recent are the deliveries that are young enough, each once: a settle may be tried again. more is set if there was no room
// for others.
func (d *deliveries) recent() (list []delivery, more bool) {
	oldest := d.now() - int32(rememberFor/time.Second)
	seen := make(map[uuid.UUID]struct{}, len(d.ring))
	for i := range d.ring {
		if _, again := seen[d.ring[i].id]; again || d.ring[i].at < oldest {
			continue
		}
		seen[d.ring[i].id] = struct{}{}
		list = append(list, d.ring[i])
	}
	return list, d.gave && d.gaveAt >= oldest
}

// forget drops all of them.
func (d *deliveries) forget() { *d = deliveries{since: d.since} }
