package outbox

import (
	"fmt"
	"time"
)

// attempt is a batch that was handed to the publisher, and what it answered.
type attempt struct {
	messages []Message
	// topics are where the messages went; nil for their own.
	topics []string
	errs   []error
	// began is how many batches had been judged when this one was begun.
	began int64
	// unsent are the messages that the publisher never saw; nil if it saw all.
	unsent []bool
}

// topic is the route of a message.
func (a *attempt) topic(i int) string {
	if a.topics != nil {
		return a.topics[i]
	}
	return a.messages[i].Topic
}

// sent reports whether the publisher saw a message.
func (a *attempt) sent(i int) bool { return a.unsent == nil || !a.unsent[i] }

// fault is who is to blame for a message that was not delivered.
type fault int

const (
	faultNobody   fault = iota // it was delivered, or not tried
	faultEvent                 // the attempt counts
	faultTerminal              // it can never succeed
	faultRoute                 // the destination as a whole: nothing counts
	faultTopic                 // its topic: nothing counts
)

// finding is what was found out about one message.
type finding struct {
	fault fault
	err   error
	// aside is how long others may pass the message, although it is not at fault for all that is
	// known; zero if they may not.
	aside time.Duration
	// tell is set when that is the first time.
	tell bool
}

// judge decides, for every message of a batch that was not delivered, who is at fault, and
// opens and closes routes. It is the one place that does: an attempt is held against an event
// only on evidence about that event.
func (s *routes) judge(a *attempt, now time.Time) (findings []finding, news []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judged++
	trying := s.trying(a)
	findings = make([]finding, len(a.errs))
	s.noteDelivered(a, now)
	away := s.judgeUnavailable(a, findings, now, &news)
	s.judgeUnclear(a, findings, away, now, &news)
	for i, err := range a.errs {
		if err == nil || findings[i].fault != faultNobody || isUntried(err) {
			continue
		}
		switch Classify(err) {
		case ClassRetryable:
			findings[i] = finding{fault: faultEvent, err: err}
		case ClassTerminal:
			findings[i] = finding{fault: faultTerminal, err: err}
			s.suspects.cleared(a.messages[i].ID)
		}
		if a.sent(i) { // it was refused by somebody who is there
			s.whole.seen = now
			trying.answered(s.topicOf(a, i))
		}
	}
	for i, err := range a.errs {
		if err != nil && a.sent(i) && !isUntried(err) {
			s.suspects.sent(a.messages[i].ID, s.judged)
		}
	}
	s.countWaiting(a, findings)
	s.endTrials(a, findings, trying, now, &news)
	return findings, news
}

// noteDelivered counts what was delivered.
func (s *routes) noteDelivered(a *attempt, now time.Time) {
	for i, err := range a.errs {
		if err != nil {
			continue
		}
		s.suspects.cleared(a.messages[i].ID)
		s.gotThrough(s.whole, 1, now)
		if r := s.topics[s.topicOf(a, i)]; r != nil {
			s.gotThrough(r, 1, now)
		}
	}
	if len(s.suspects.unclear) > 0 {
		for topic := range a.delivered() {
			s.suspects.refute(topic, a.began, s.judged)
		}
	}
}

// gotThrough notes messages that a route has delivered.
func (s *routes) gotThrough(r *route, n int, now time.Time) {
	r.noteDelivered(n, now)
	if r.standing.noteDelivered(n) && r.standing.doubted > 0 {
		r.standing.doubted = s.suspects.inDoubt(r.topic)
	}
}

// delivered are the routes on which something was delivered; the whole destination is the empty one.
func (a *attempt) delivered() map[string]bool {
	list := make(map[string]bool)
	for i, err := range a.errs {
		if err == nil {
			list[""], list[a.topic(i)] = true, true
		}
	}
	return list
}

// judgeUnavailable closes the routes that take nothing. It reports whether the whole destination
// is one of them.
func (s *routes) judgeUnavailable(a *attempt, findings []finding, now time.Time, news *[]change) (away bool) {
	for i, err := range a.errs {
		if err == nil || isUntried(err) || Classify(err) != ClassUnavailable {
			continue
		}
		if topic := s.topicOf(a, i); ofTopic(err) && topic != "" {
			findings[i] = finding{fault: faultTopic, err: err}
			s.shut(s.make(topic, now), now, err, news)
			continue
		}
		findings[i] = finding{fault: faultRoute, err: err}
		// Only the first is where the connection broke; the rest never had their turn.
		if !away && mayBeOne(err) && s.suspects.broke(a.messages[i].ID, s.whole.delivered) {
			if !mayBePoison(err) {
				// Somebody is there for the others, and not for this one. That is no fault of its own.
				findings[i].aside, findings[i].tell = asideMost, s.suspects.tell(a.messages[i].ID)
				continue
			}
			s.suspects.cleared(a.messages[i].ID)
			findings[i].fault, findings[i].err = faultEvent, fmt.Errorf("the connection broke at this event %d times running: %w", poisonBreaks, err)
		}
		away = true
		s.shut(s.whole, now, err, news)
	}
	return away
}

// judgeUnclear decides about answers that may be the event's fault or its route's: its topic, or the
// destination where it has none. The event is at fault if it is the only one that gets such answers,
// again and again, while its route is seen to be well in between. What else is delivered of the same
// batch proves nothing: nobody knows whether that was before the destination went away, or after it came
// back. An event that is not at fault is given back and remembered, and a route that gives such answers
// only is closed.
func (s *routes) judgeUnclear(a *attempt, findings []finding, away bool, now time.Time, news *[]change) {
	doubts := make(map[string][]int)
	known := make(map[string][]int) // events that may be at fault, if their route troubles no others
	for i, err := range a.errs {
		if err == nil || isUntried(err) || Classify(err) != ClassUnclear {
			continue
		}
		id, topic := a.messages[i].ID, s.topicOf(a, i)
		findings[i] = finding{fault: faultRoute, err: err}
		if away {
			continue
		}
		if isProven(err) {
			s.suspects.convict(id, topic, s.judged, &s.make(topic, now).standing, true)
			findings[i].fault = faultEvent
			continue
		}
		switch d := s.suspects.doubt(id, topic, a.began, s.judged, &s.make(topic, now).standing, err); {
		case d.times >= unclearTries, d.proven:
			known[topic] = append(known[topic], i)
			findings[i].aside = min(pingFirst<<min(d.times, 10), asideMost) // if it is not at fault
		case d.convicted:
			// It may be its own fault once more, or the route's this time: nothing has been delivered since.
			findings[i].aside, findings[i].tell = pingMax, s.suspects.tell(id)
		default:
			doubts[topic] = append(doubts[topic], i)
		}
	}
	s.blame(a, findings, known, doubts, now, news)
	if len(doubts) > 0 {
		s.strike(a, findings, doubts, now, news)
	}
}

// blame finds the events at fault that may be, unless it is their route that troubles many: then they are
// added to those in doubt.
func (s *routes) blame(a *attempt, findings []finding, known, doubts map[string][]int, now time.Time, news *[]change) {
	for topic, places := range known {
		r := s.make(topic, now)
		if !r.standing.speaks() && now.Sub(r.toldDoubts) > time.Minute {
			r.toldDoubts = now
			*news = append(*news, change{RouteStatus: r.status(), err: a.errs[places[0]], doubts: r.standing.doubted})
		}
		if len(doubts[topic]) > 0 || r.strikes > 0 || !r.standing.speaks() {
			doubts[topic] = append(doubts[topic], places...)
			continue
		}
		for _, i := range places {
			s.suspects.convict(a.messages[i].ID, topic, s.judged, &r.standing, false)
			findings[i].fault = faultEvent
		}
	}
}

// strike holds unclear answers against their routes, and closes those that deliver nothing. What other
// topics deliver says nothing about this one: it may be the one that is set up wrong.
func (s *routes) strike(a *attempt, findings []finding, doubts map[string][]int, now time.Time, news *[]change) {
	delivered := a.delivered()
	for topic, places := range doubts {
		r := s.make(topic, now)
		if delivered[topic] {
			continue
		}
		r.strikes++
		if r.state != routeTrial && r.strikes < maxStrikes && !severalKeys(a.messages, places) {
			continue
		}
		s.shut(r, now, a.errs[places[0]], news)
		if topic == "" {
			continue
		}
		for _, i := range places {
			findings[i].fault, findings[i].aside = faultTopic, 0
		}
	}
}

// severalKeys reports whether messages are of more than one key.
func severalKeys(messages []Message, places []int) bool {
	first := messages[places[0]].Key
	for _, i := range places[1:] {
		if key := messages[i].Key; key == "" || key != first {
			return true
		}
	}
	return false
}

// shut closes a route.
func (s *routes) shut(r *route, now time.Time, err error, news *[]change) {
	if r.state != routeClosed {
		defer s.wake() // it has to be looked at again
	}
	if r.close(now, err) {
		*news = append(*news, change{RouteStatus: r.status(), err: err})
	}
}

// countWaiting counts, for people, the events that each route has sent back.
func (s *routes) countWaiting(a *attempt, findings []finding) {
	for i := range findings {
		switch findings[i].fault {
		case faultRoute:
			s.whole.waiting++
		case faultTopic:
			s.topics[s.topicOf(a, i)].waiting++
		}
	}
}

// passed is judge for a batch that was delivered whole, as nearly all are.
func (s *routes) passed(a *attempt, now time.Time) (news []change) {
	s.mu.Lock()
	simple := len(s.topics) == 0 && s.whole.state == routeOpen
	if simple {
		s.judged++
		for i := range a.messages {
			s.suspects.cleared(a.messages[i].ID)
		}
		s.gotThrough(s.whole, len(a.messages), now)
		s.suspects.refute("", a.began, s.judged)
	}
	s.mu.Unlock()
	if simple {
		return nil
	}
	_, news = s.judge(a, now)
	return news
}
