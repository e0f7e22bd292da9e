package outbox

import (
	"fmt"
	"time"
)

// attempt is a batch handed to the publisher, with the publisher's answers.
type attempt struct {
	messages []Message
	// topics are the topics the messages were sent to; nil if each went to its own.
	topics []string
	errs   []error
	// began is how many batches had been judged when this one began.
	began int64
	// unsent marks the messages the publisher never saw; nil if it saw all.
	unsent []bool
}

func (a *attempt) topic(i int) string {
	if a.topics != nil {
		return a.topics[i]
	}
	return a.messages[i].Topic
}

// sent reports whether the publisher saw a message.
func (a *attempt) sent(i int) bool { return a.unsent == nil || !a.unsent[i] }

// fault says who is to blame for an undelivered message.
type fault int

const (
	faultNobody   fault = iota // it was delivered, or not tried
	faultEvent                 // the attempt counts
	faultTerminal              // it can never succeed
	faultRoute                 // the destination as a whole: nothing counts
	faultTopic                 // its topic: nothing counts
)

// finding is the judgement of one message.
type finding struct {
	fault fault
	err   error
	// aside is how long others may pass the message although it is not known to be at fault; zero if they may not.
	aside time.Duration
	// tell is set the first time the message is set aside.
	tell bool
}

// judge decides who is at fault for every undelivered message of a batch, and opens and closes routes. No other
// code does: an attempt counts against an event only on evidence about that event.
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
		if a.sent(i) { // the destination answered, so it is up
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

// noteDelivered records what was delivered.
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

// gotThrough records messages that a route delivered.
func (s *routes) gotThrough(r *route, n int, now time.Time) {
	r.noteDelivered(n, now)
	if r.standing.noteDelivered(n) && r.standing.doubted > 0 {
		r.standing.doubted = s.suspects.inDoubt(r.topic)
	}
}

// delivered returns the routes that delivered something; the empty string is the whole destination.
func (a *attempt) delivered() map[string]bool {
	list := make(map[string]bool)
	for i, err := range a.errs {
		if err == nil {
			list[""], list[a.topic(i)] = true, true
		}
	}
	return list
}

// judgeUnavailable closes the unavailable routes. It reports whether the whole destination is one of them.
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
		// The connection broke at the first message only; the rest never had their turn.
		if !away && mayBeOne(err) && s.suspects.broke(a.messages[i].ID, s.whole.delivered) {
			if !mayBePoison(err) {
				// The destination accepts other messages, but not this one. The message is not to blame for that.
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

// judgeUnclear judges answers that may be the fault of the event or of its route: its topic, or the destination for
// an event without one. The event is at fault if it alone gets such answers repeatedly while its route works in
// between. Other deliveries of the same batch prove nothing: they may have happened before the destination went
// away, or after it came back. An event that is not at fault is given back and remembered. A route that gives only
// such answers is closed.
func (s *routes) judgeUnclear(a *attempt, findings []finding, away bool, now time.Time, news *[]change) {
	doubts := make(map[string][]int)
	known := make(map[string][]int) // events at fault, unless their route troubles others
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
			// Nothing has been delivered since, so it may be at fault again, or this time the route is.
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

// blame finds the known events at fault. If their route troubles many events, it moves them to doubts instead.
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

// strike holds unclear answers against their routes, and closes routes that deliver nothing. Deliveries of other
// topics prove nothing: this topic may be the one with the wrong settings.
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

// severalKeys reports whether the messages have more than one key.
func severalKeys(messages []Message, places []int) bool {
	first := messages[places[0]].Key
	for _, i := range places[1:] {
		if key := messages[i].Key; key == "" || key != first {
			return true
		}
	}
	return false
}

func (s *routes) shut(r *route, now time.Time, err error, news *[]change) {
	if r.state != routeClosed {
		defer s.wake() // the route must be pinged again
	}
	if r.close(now, err) {
		*news = append(*news, change{RouteStatus: r.status(), err: err})
	}
}

// countWaiting counts the events that each route has sent back, for the log.
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

// passed is judge for a fully delivered batch, the usual case.
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
