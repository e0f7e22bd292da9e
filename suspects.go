package outbox

import "github.com/google/uuid"

const (
	// poisonBreaks is how often running one event has to be the one at which the connection
	// breaks before it is suspected rather than the destination.
	poisonBreaks = 3
	// unclearTries is how often running an event has to get an unclear answer, with others delivered
	// in between, before it is at fault. Once is not enough: so does an event that meets a destination
	// when that goes away or comes back.
	unclearTries = 2
	// maxSuspects bounds what is remembered of such events.
	maxSuspects = 1000
)

// suspects are the events that may be at fault for what happened to a route. What is forgotten
// of them only means that an event is tried once more, uncounted.
type suspects struct {
	// breaks are the events at which the connection broke.
	breaks map[uuid.UUID]breakage
	// unclear are the events that got an unclear answer.
	unclear map[uuid.UUID]doubt
	// convicted are those whose unclear answers were their own fault once.
	convicted map[uuid.UUID]struct{}
}

// breakage is how often the connection broke at an event, and how many messages the destination
// had delivered when it first did.
type breakage struct {
	times     int
	delivered int64
}

// doubt is an unclear answer, by the numbers of judgements.
type doubt struct {
	topic string
	// times is how often it got one, with the route seen to be well in between.
	times int
	// since is the judgement of the last answer. Refuted is the first one that showed that the route
	// is well: of a batch that was begun after since, and of which something was delivered. Zero
	// is none yet.
	since, refuted int64
}

func newSuspects() suspects {
	return suspects{
		breaks: make(map[uuid.UUID]breakage), unclear: make(map[uuid.UUID]doubt), convicted: make(map[uuid.UUID]struct{}),
	}
}

// bounded makes room for one more.
func bounded[V any](m map[uuid.UUID]V) map[uuid.UUID]V {
	if len(m) >= maxSuspects {
		clear(m) // so many cannot all be at fault
	}
	return m
}

// broke notes the event at which the connection broke. It reports true the third time, if other
// events were delivered meanwhile: then it is the event that breaks it.
func (s *suspects) broke(id uuid.UUID, delivered int64) bool {
	b, known := s.breaks[id]
	switch {
	case !known:
		b = breakage{times: 1, delivered: delivered}
	case delivered > b.delivered:
		b.times++
	}
	if b.times >= poisonBreaks {
		delete(s.breaks, id)
		return true
	}
	bounded(s.breaks)[id] = b
	return false
}

// isBreaker reports whether the connection broke at an event that was not delivered since.
func (s *suspects) isBreaker(id uuid.UUID) bool {
	_, broke := s.breaks[id]
	return broke
}

// refute notes that a route has delivered something of a batch that was begun after the judgement
// began; this one is now.
func (s *suspects) refute(topic string, began, now int64) {
	for id, d := range s.unclear {
		if d.refuted == 0 && d.topic == topic && d.since <= began {
			d.refuted = now
			s.unclear[id] = d
		}
	}
}

// doubt notes an unclear answer of a batch that was begun after the judgement began; this one is now.
// It returns how often the event got one, with its route seen to be well in between. Overtaken is set
// when it was seen to be well after this one, too.
func (s *suspects) doubt(id uuid.UUID, topic string, began, now int64, overtaken bool) (times int) {
	d, known := s.unclear[id]
	switch {
	case !known || d.topic != topic:
		d = doubt{topic: topic, times: 1, since: now}
	case d.refuted > 0 && d.refuted <= began:
		d = doubt{topic: topic, times: d.times + 1, since: now}
	}
	if overtaken && d.refuted == 0 {
		d.refuted = now
	}
	bounded(s.unclear)[id] = d
	return d.times
}

// convict notes that an event was at fault.
func (s *suspects) convict(id uuid.UUID) {
	delete(s.unclear, id)
	bounded(s.convicted)[id] = struct{}{}
}

// isConvicted reports whether an event was at fault before.
func (s *suspects) isConvicted(id uuid.UUID) bool {
	_, convicted := s.convicted[id]
	return convicted
}

// cleared forgets an event that was delivered, or is dead.
func (s *suspects) cleared(id uuid.UUID) {
	if len(s.breaks)+len(s.unclear)+len(s.convicted) == 0 {
		return
	}
	delete(s.breaks, id)
	delete(s.unclear, id)
	delete(s.convicted, id)
}
