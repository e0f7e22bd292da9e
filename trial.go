package outbox

import (
	"cmp"
	"slices"
	"time"
)

// pick marks, among messages that are ready to be sent, those that have to wait: their topic is
// closed, or it is on trial and others are tried.
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

// waiting is whether a message has to wait.
type waiting int

const (
	waitNot    waiting = iota
	waitTrial          // for a trial that is made with others
	waitClosed         // until its topic is open
)

const (
	// trialSize is two, so that a single event that is at fault does not pass for a route that is
	// closed: the other one arrives. It doubles with every trial that fails, up to trialMost, for
	// there may be more than one.
	trialSize = 2
	trialMost = 32
	// maxTried is how many events are set aside by the trials of a route, for others to be tried. If
	// so many got nowhere, the route is at fault.
	maxTried = 256
)

// choose picks the messages of a trial: of different keys, each the first of its key, and rather
// those that were in none that failed, and that need not be sent alone.
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

// firstOfKeys marks the messages that are the first of their key, or have none.
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

// alone are the messages that have to be sent by themselves. Those that were longest not sent come first:
// who is sent after one at which the connection breaks is not sent, and must not stay behind it for ever.
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

// trying are the routes that are on trial with this batch.
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

// endTrials opens the routes that delivered something, or answered. The messages of a trial that failed
// are set aside: the next one is to be made with others, and on a store that keeps order nobody
// gets past them otherwise.
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
			list[""] = true // whatever is wrong with the topic, somebody is there
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
