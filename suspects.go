package outbox

import "github.com/google/uuid"

const (
	// poisonBreaks is how many times in a row the destination must fail at one event before the event is suspected
	// rather than the destination.
	poisonBreaks = 3
	// unclearTries is how many unclear answers in a row, with deliveries in between, put an event at fault. One is
	// not enough: an event may meet a destination that is just going down or coming back.
	unclearTries = 2
	// maxSuspects bounds how many such events are remembered.
	maxSuspects = 1000
)

// suspects are the events that may be at fault for the failure of a route. Forgetting one only means that it is
// tried once more, uncounted.
type suspects struct {
	// breaks are the events at which the connection broke or the destination accepted nothing.
	breaks map[uuid.UUID]breakage
	// unclear are the events that got an unclear answer.
	unclear map[uuid.UUID]doubt
	// turns are the judgements at which events that must be sent alone were last sent.
	turns map[uuid.UUID]int64
	// told are the events that were logged as set aside.
	told map[uuid.UUID]struct{}
}

// breakage counts how often the connection broke at an event, and how much the destination had delivered by the
// last time.
type breakage struct {
	times     int
	delivered int64
}

// doubt describes an event's unclear answers. Its times are the numbers of judgements.
type doubt struct {
	topic string
	// times is how many unclear answers it got, with deliveries of its route in between.
	times int
	// since is the judgement of the last answer. refuted is the first judgement that showed that the route works:
	// it delivered something of a batch that began after since. Zero means none yet.
	since, refuted int64
	// silent is set if the answer was a timeout.
	silent bool
	// stretch is the last stretch of its route's standing in which it failed.
	stretch int64
	// convicted is set if such an answer was the event's own fault before. proven is set if that was certain,
	// because the publisher panicked.
	convicted, proven bool
}

func newSuspects() suspects {
	return suspects{
		breaks: make(map[uuid.UUID]breakage), unclear: make(map[uuid.UUID]doubt),
		turns: make(map[uuid.UUID]int64), told: make(map[uuid.UUID]struct{}),
	}
}

// bounded makes room for one more entry.
func bounded[V any](m map[uuid.UUID]V) map[uuid.UUID]V {
	if len(m) >= maxSuspects {
		clear(m) // so many cannot all be at fault
	}
	return m
}

// broke records that the connection broke at an event, or that the destination accepted nothing. From the third
// time on it returns true if other events were delivered in between: then the event is at fault.
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

// isAlone reports whether an event must be sent alone to find out whether it is at fault: the connection broke at
// it, or it timed out, perhaps because of an event sent with it.
func (s *suspects) isAlone(id uuid.UUID) bool {
	_, broke := s.breaks[id]
	return broke || s.unclear[id].silent
}

// sent records that an event was sent at the judgement now.
func (s *suspects) sent(id uuid.UUID, now int64) {
	if s.isAlone(id) {
		bounded(s.turns)[id] = now
	}
}

// tell reports whether an event is set aside for the first time.
func (s *suspects) tell(id uuid.UUID) bool {
	_, told := s.told[id]
	bounded(s.told)[id] = struct{}{}
	return !told
}

// refute records that, at the judgement now, a route delivered something of a batch that began after the judgement
// began.
func (s *suspects) refute(topic string, began, now int64) {
	for id, d := range s.unclear {
		if d.refuted == 0 && d.topic == topic && d.since <= began {
			d.refuted = now
			s.unclear[id] = d
		}
	}
}

// doubt records, at the judgement now, an unclear answer of a batch that began after the judgement began. It
// returns what is known of the event.
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

// convict records, at the judgement now, that an event was at fault. Next time one more answer is enough. Unless
// the fault is proven, its route must be seen to work before that.
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

// cleared forgets an event that was delivered or is dead.
func (s *suspects) cleared(id uuid.UUID) {
	if len(s.breaks)+len(s.unclear) == 0 {
		return
	}
	delete(s.breaks, id)
	delete(s.unclear, id)
	delete(s.turns, id)
	delete(s.told, id)
}
