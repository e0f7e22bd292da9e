package pgstream

import "github.com/packfinderz/outbox"

// The states of a parked event.
const (
	stateRetry   = "retry"
	stateWaiting = "waiting"
	stateStopped = "stopped"
	stateDead    = "dead"
	stateHeld    = "held"
)

// verdict is what is written about one page.
type verdict struct {
	// pos is the new position, closes whether the window ends, first and last the seqs that were settled; zero for none.
	pos         int64
	closes      bool
	first, last int64
	// parks are the events that were not delivered, rest those that stay in the page.
	parks []park
	rest  []int
	// behind is the closed topic for which the page was cut, if it was.
	behind string
}

// park is one event of a page that is parked.
type park struct {
	index    int
	state    string
	gates    bool
	attempts int
	delay    *float64 // seconds; nil for the event's not_before
	err      *string
	reason   *string
	route    *string // the topic that a stopped event waits for
}

// judge turns the outcomes of a page into what is written. The cursor cannot pass an event that was given back, because
// the broker is away or the relay stops: the page is cut there. If a later event of the page was tried, or others may
// pass this one, it is parked instead, uncounted: what was delivered must not be published again.
//
// An event whose topic is closed is parked until the topic opens. Without room for it, the page is cut.
func (p *part) judge(outcomes []outbox.Outcome, onDead OnDead, room func(topic string) bool) verdict {
	v := verdict{pos: p.cursor.pos}
	page := p.page
	blocked := make(map[string]string) // keys that stop in this page, and the state of what follows
	next, cut := 0, -1
	overtaken := overtaken(outcomes)
	for i := range page.places {
		key := page.messages[i].Key
		if p.held != nil && p.held[i] {
			if cut < 0 {
				v.parks = append(v.parks, heldBack(i, key, page.places[i].delayed))
			} else {
				v.rest = append(v.rest, i)
			}
			continue
		}
		outcome := &outcomes[next]
		next++
		if cut >= 0 {
			if outcome.Kind != outbox.Delivered {
				v.rest = append(v.rest, i)
			}
			continue
		}
		switch {
		case outcome.Kind == outbox.Delivered:
		case outcome.Kind == outbox.Failed, outcome.Kind == outbox.Stopped && room(outcome.Topic):
			v.parks = append(v.parks, parkOf(i, &page.messages[i], outcome, onDead))
			blocked[key] = stateWaiting
		case outcome.Kind == outbox.Died:
			v.parks = append(v.parks, parkOf(i, &page.messages[i], outcome, onDead))
			// Under skip the key goes on; what was not tried because of this one is due at once.
			blocked[key] = stateRetry
			if onDead == DeadBlocks {
				blocked[key] = stateWaiting
			}
		default:
			state, behind := blocked[key]
			if !behind || key == "" {
				if outcome.Kind == outbox.Released && (outcome.Delay > 0 || next <= overtaken) {
					v.parks = append(v.parks, parkOf(i, &page.messages[i], outcome, onDead))
					blocked[key] = stateWaiting
					continue
				}
				cut = i
				v.rest = append(v.rest, i)
				v.behind = outcome.Topic
				continue
			}
			v.parks = append(v.parks, behindFailed(i, state))
			blocked[key] = stateWaiting
		}
	}
	done := len(page.places)
	if cut >= 0 {
		done = cut
	}
	if done > 0 {
		v.first, v.last = page.places[0].seq, page.places[done-1].seq
		v.pos = v.last
	}
	if cut < 0 {
		v.pos, v.closes = page.to, page.closes
	}
	return v
}

// overtaken is the number of outcomes up to the last one that is more than an event given back.
func overtaken(outcomes []outbox.Outcome) int {
	for i := len(outcomes) - 1; i >= 0; i-- {
		if kind := outcomes[i].Kind; kind != outbox.Released && kind != outbox.Stopped {
			return i + 1
		}
	}
	return 0
}

func heldBack(index int, key string, delayed bool) park {
	if delayed {
		return park{index: index, state: stateRetry}
	}
	return park{index: index, state: stateWaiting, gates: key != ""}
}

// parkOf is how an event with an outcome is parked. One that was given back is parked as if it had not been tried.
func parkOf(index int, m *outbox.Message, outcome *outbox.Outcome, onDead OnDead) park {
	delay := outcome.Delay.Seconds()
	p := park{index: index, state: stateRetry, gates: m.Key != "", attempts: m.Attempt, err: &outcome.Error}
	switch outcome.Kind {
	case outbox.Failed:
		p.delay = &delay
	case outbox.Died:
		reason := string(outcome.Reason)
		p.state, p.reason, p.gates = stateDead, &reason, p.gates && onDead == DeadBlocks
		if outcome.Uncounted {
			p.attempts--
		}
	case outbox.Stopped:
		p.state, p.route, p.attempts = stateStopped, &outcome.Topic, m.Attempt-1
	default:
		p.delay, p.attempts = &delay, m.Attempt-1
		if outcome.Error == "" {
			p.err = nil
		}
	}
	return p
}

func behindFailed(index int, state string) park {
	if state == stateWaiting {
		return park{index: index, state: stateWaiting, gates: true}
	}
	now := 0.0
	return park{index: index, state: stateRetry, gates: true, delay: &now}
}

// parkArrays are parked events as statements take them.
type parkArrays struct {
	shards          []int16
	seqs            []int64
	states          []string
	gates           []bool
	attempts        []int32
	delays          []*float64
	errors, reasons []*string
	routes          []*string
}

func (a *parkArrays) add(shard int16, seq int64, p *park) {
	a.shards, a.seqs = append(a.shards, shard), append(a.seqs, seq)
	a.states, a.gates = append(a.states, p.state), append(a.gates, p.gates)
	a.attempts, a.delays = append(a.attempts, int32(p.attempts)), append(a.delays, p.delay)
	a.errors, a.reasons, a.routes = append(a.errors, p.err), append(a.reasons, p.reason), append(a.routes, p.route)
}

func (a *parkArrays) args() []any {
	return []any{a.shards, a.seqs, a.states, a.gates, a.attempts, a.delays, a.errors, a.reasons, a.routes}
}

// parkList is the events that a settle parks.
type parkList struct {
	parkArrays
	slots []int16
	keys  []string
}

func (l *parkList) addPage(number int16, page *page, parks []park) {
	for i := range parks {
		place := page.places[parks[i].index]
		l.add(number, place.seq, &parks[i])
		l.slots, l.keys = append(l.slots, place.slot), append(l.keys, page.messages[parks[i].index].Key)
	}
}

// waiting are the keys of events that were parked behind another, each once.
func (l *parkList) waiting() (shards []int16, keys []string) {
	seen := make(map[string]struct{})
	for i, state := range l.states {
		if _, twice := seen[l.keys[i]]; state == stateWaiting && !twice {
			seen[l.keys[i]] = struct{}{}
			shards, keys = append(shards, l.shards[i]), append(keys, l.keys[i])
		}
	}
	return shards, keys
}
