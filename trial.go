package outbox

import (
	"cmp"
	"slices"
	"time"
)

// pick marks the ready messages that must wait: their topic is closed, or it is on trial with other messages.
func (s *routes) pick(messages []Message, trial bool) (waits []waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !trial && len(s.topics) == 0 {
		return nil
	}
	waits = make([]waiting, len(messages))
	groups := make(map[string][]int) // by route on trial
	for i := range messages {
		r := s.topics[s.known(messages[i].Topic)]
		switch {
		case r != nil && r.state == routeClosed:
			waits[i] = waitClosed
			r.waiting++
		case r != nil && r.state == routeTrial:
			waits[i] = waitTrial
			if !r.trying {
				groups[r.topic] = append(groups[r.topic], i)
			}
		case trial:
			waits[i] = waitTrial
			groups[""] = append(groups[""], i)
		}
	}
	for topic, places := range groups {
		r := s.of(topic)
		r.trying = true
		for _, i := range s.choose(r, messages, places) {
			waits[i] = waitNot
		}
	}
	return waits
}

// waiting says whether and why a message must wait.
type waiting int

const (
	waitNot    waiting = iota
	waitTrial          // for a trial with other messages
	waitClosed         // until its topic is open
)

const (
	// trialSize is two: if one event is at fault, the other still gets through and shows that the route works. The
	// size doubles with every failed trial, up to trialMost, because several events may be at fault.
	trialSize = 2
	trialMost = 32
	// maxTried is how many events the trials of a route set aside so that others can be tried. If so many failed,
	// the route is at fault.
	maxTried = 256
)

// choose picks the messages of a trial. Each is the first of its key. Messages that were in no failed trial and
// need not be sent alone come first.
func (s *routes) choose(r *route, messages []Message, places []int) []int {
	var chosen []int
	size := min(trialSize<<min(r.trials, 10), trialMost)
	first := firstOfKeys(messages)
	for _, again := range []bool{false, true} {
		for _, i := range places {
			if len(chosen) == size {
				return chosen
			}
			_, tried := r.tried[messages[i].ID]
			if seen := tried || s.suspects.isAlone(messages[i].ID); seen == again && first[i] {
				chosen = append(chosen, i)
			}
		}
	}
	return chosen
}

// firstOfKeys marks the messages that are the first of their key, or have no key.
func firstOfKeys(messages []Message) []bool {
	first := make([]bool, len(messages))
	seen := make(map[string]struct{}, len(messages))
	for i := range messages {
		key := messages[i].Key
		if _, later := seen[key]; !later || key == "" {
			seen[key] = struct{}{}
			first[i] = true
		}
	}
	return first
}

// alone returns the messages that must be sent alone, the longest unsent first. Nothing is sent after a message
// that breaks the connection, and no message may stay behind such a one forever.
func (s *routes) alone(messages []Message) (places []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.suspects.breaks)+len(s.suspects.unclear) == 0 {
		return nil
	}
	for i := range messages {
		if s.suspects.isAlone(messages[i].ID) {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(i, j int) int {
		return cmp.Compare(s.suspects.turns[messages[i].ID], s.suspects.turns[messages[j].ID])
	})
	return places
}

// trials are the routes that a batch tries, and whether they answered.
type trials map[string]bool

func (t trials) answered(topic string) {
	for _, topic := range []string{"", topic} {
		if _, trying := t[topic]; trying {
			t[topic] = true
		}
	}
}

// trying returns the routes that this batch tries.
func (s *routes) trying(a *attempt) trials {
	list := make(trials)
	if s.whole.trying {
		list[""] = false
	}
	if len(s.topics) == 0 {
		return list
	}
	for i := range a.messages {
		if r := s.topics[s.topicOf(a, i)]; r != nil && r.trying {
			list[r.topic] = false
		}
	}
	return list
}

// endTrials opens the routes that delivered something or answered. It sets aside the messages of a failed trial, so
// that the next trial takes others and, on a store that keeps order, others can pass them.
func (s *routes) endTrials(a *attempt, findings []finding, list trials, now time.Time, news *[]change) {
	if len(list) == 0 {
		return
	}
	for i, err := range a.errs {
		if err == nil {
			list.answered(s.topicOf(a, i))
			continue
		}
		if isUntried(err) || !a.sent(i) {
			continue
		}
		if _, tried := list[""]; tried && s.topicOf(a, i) != "" && Classify(err) == ClassUnclear && !isSilence(err) {
			list[""] = true // whatever is wrong with the topic, the destination answers
		}
		for _, topic := range []string{"", s.topicOf(a, i)} {
			if _, tried := list[topic]; tried {
				aside := s.of(topic).failedTrial(a.messages[i].ID)
				if findings[i].fault == faultRoute {
					findings[i].aside = max(findings[i].aside, aside)
				}
			}
		}
	}
	for topic, answered := range list {
		r := s.of(topic)
		began, waiting := r.since, r.waiting
		switch {
		case r.state == routeClosed:
			r.trials++
		case answered:
			if r.open(now) {
				*news = append(*news, change{RouteStatus: r.status(), lasted: now.Sub(began), events: waiting})
			}
			r.waiting = 0
		default:
			r.trying = false // nothing was sent
		}
		if topic == "" {
			s.free()
		}
	}
}
