package outbox

import "github.com/google/uuid"

const (
	// poisonBreaks is how often running one event has to be the one at which the destination is away
	// before it is suspected rather than the destination.
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
	// breaks are the events at which the connection broke, or the destination took nothing.
	breaks map[uuid.UUID]breakage
	// unclear are the events that got an unclear answer.
	unclear map[uuid.UUID]doubt
	// turns are when those that have to be sent alone were last sent, by the numbers of judgements.
	turns map[uuid.UUID]int64
	// told are those that people have heard of.
	told map[uuid.UUID]struct{}
}

// breakage is how often the connection broke at an event, and how many messages the destination
// had delivered when it last counted.
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
	// silent is set when the answer was that none came in time.
	silent bool
	// stretch is the last one of its route's standing in which it failed.
	stretch int64
	// convicted is set when such an answer was the event's own fault before, and proven when that was
	// certain: the publisher panics.
	convicted, proven bool
}

func newSuspects() suspects {
	return suspects{
		breaks: make(map[uuid.UUID]breakage), unclear: make(map[uuid.UUID]doubt),
		turns: make(map[uuid.UUID]int64), told: make(map[uuid.UUID]struct{}),
	}
}

// bounded makes room for one more.
func bounded[V any](m map[uuid.UUID]V) map[uuid.UUID]V {
	if len(m) >= maxSuspects {
		clear(m) // so many cannot all be at fault
	}
	return m
}

// broke notes the event at which the connection broke, or the destination took nothing. It reports true
// from the third time on, if other events were delivered in between: then it is about the event.
func (s *suspects) broke(id uuid.UUID, delivered int64) bool {
	b, known := s.breaks[id]
	switch {
	case !known:
		b = breakage{times: 1, delivered: delivered}
	case delivered > b.delivered:
		b = breakage{times: b.times + 1, delivered: delivered}
	}
	bounded(s.breaks)[id] = b
	return b.times >= poisonBreaks
}

// isAlone reports whether an event has to be sent by itself, to find out whether it is at fault: the
// connection broke at it, or no answer came in time, which may be for all that was sent with it.
func (s *suspects) isAlone(id uuid.UUID) bool {
	_, broke := s.breaks[id]
	return broke || s.unclear[id].silent
}

// sent notes that an event was sent, by the judgement now.
func (s *suspects) sent(id uuid.UUID, now int64) {
	if s.isAlone(id) {
		bounded(s.turns)[id] = now
	}
}

// tell reports whether people have not heard yet that an event is set aside.
func (s *suspects) tell(id uuid.UUID) bool {
	_, told := s.told[id]
	bounded(s.told)[id] = struct{}{}
	return !told
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
// It returns what is known of the event then.
func (s *suspects) doubt(id uuid.UUID, topic string, began, now int64, of *standing, err error) doubt {
	d, known := s.unclear[id]
	switch {
	case !known || d.topic != topic:
		d = doubt{topic: topic, times: 1, since: now}
		of.doubted++
	case d.refuted > 0 && d.refuted <= began:
		d = doubt{topic: topic, times: d.times + 1, since: now, stretch: d.stretch, convicted: d.convicted, proven: d.proven}
	}
	if isOvertaken(err) && d.refuted == 0 {
		d.refuted = now
	}
	d.silent = isSilence(err)
	if !d.convicted {
		of.noteFailed(&d)
	}
	bounded(s.unclear)[id] = d
	return d
}

// convict notes that an event was at fault, by the judgement now. For the next time one more answer is
// enough, but its route has to be seen to be well before that, unless its fault is proven.
func (s *suspects) convict(id uuid.UUID, topic string, now int64, of *standing, proven bool) {
	last, known := s.unclear[id]
	if known && !last.convicted {
		of.doubted = max(of.doubted-1, 0)
	}
	bounded(s.unclear)[id] = doubt{
		topic: topic, times: unclearTries - 1, since: now, stretch: last.stretch, silent: last.silent, convicted: true, proven: proven || last.proven,
	}
}

// inDoubt counts the events of a topic that are in doubt.
func (s *suspects) inDoubt(topic string) (n int) {
	for _, d := range s.unclear {
		if d.topic == topic && !d.convicted {
			n++
		}
	}
	return n
}

// cleared forgets an event that was delivered, or is dead.
func (s *suspects) cleared(id uuid.UUID) {
	if len(s.breaks)+len(s.unclear) == 0 {
		return
	}
	delete(s.breaks, id)
	delete(s.unclear, id)
	delete(s.turns, id)
	delete(s.told, id)
}
