package outbox

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxTopics is how many topics are kept before the open ones are forgotten.
const maxTopics = 10_000

// routes are the routes to the destination: the whole of it, and its topics. It leaves out topics that never failed
// and that the configuration does not name.
type routes struct {
	mu     sync.Mutex
	whole  *route
	topics map[string]*route
	// named are the topics that are pinged although nothing was sent to them yet.
	named map[string]bool
	// suspects are the events that may be at fault.
	suspects suspects
	// judged counts the judged batches.
	judged int64
	// news is sent to when a route must be pinged sooner. freed is closed when the destination may be used again.
	news  chan struct{}
	freed chan struct{}
}

// newRoutes returns the routes of a destination that must be pinged first, if it can be.
func newRoutes(asks bool, topics []string) *routes {
	s := &routes{
		topics: make(map[string]*route), named: make(map[string]bool), suspects: newSuspects(),
		news: make(chan struct{}, 1), freed: make(chan struct{}),
	}
	now := time.Now()
	s.whole = newRoute("", now)
	if asks {
		s.whole.state, s.whole.fresh, s.whole.err = routeClosed, true, errNotAsked
	}
	for _, topic := range topics {
		s.named[topic] = true
		s.topics[topic] = newRoute(topic, now)
	}
	return s
}

// noTopic is the route of events without a topic, if the destination needs one. No topic has this name:
// PostgreSQL's text cannot hold the character.
const noTopic = "\x00"

// known returns a message's topic as the routes know it.
func (s *routes) known(topic string) string {
	if topic == "" && s.topics[noTopic] != nil {
		return noTopic
	}
	return topic
}

// topicOf returns the topic of a message that was tried, as the routes know it.
func (s *routes) topicOf(a *attempt, i int) string {
	if topic := a.topic(i); topic != "" || !isOneOf(a.errs[i], ErrNoTopic) {
		return s.known(topic)
	}
	return noTopic
}

// of returns the route of a topic; nil for a topic that never failed and is not named.
func (s *routes) of(topic string) *route {
	if topic == "" {
		return s.whole
	}
	return s.topics[topic]
}

// make returns the route of a topic, and adds it if necessary.
func (s *routes) make(topic string, now time.Time) *route {
	if r := s.of(topic); r != nil {
		return r
	}
	if len(s.topics) >= maxTopics {
		maps.DeleteFunc(s.topics, func(name string, r *route) bool { return r.state == routeOpen && !s.named[name] })
	}
	r := newRoute(topic, now)
	s.topics[topic] = r
	return r
}

// admission says what may be claimed now.
type admission struct {
	// wait is closed when it is worth asking again; nil if something may be claimed.
	wait <-chan struct{}
	// trial is set if the batch is a trial of whether the destination is back.
	trial bool
	// closed are the topics whose events a claim leaves out.
	closed []string
}

// admit returns what may be claimed now. A trial must be ended with endTrial or a judgement.
func (s *routes) admit() admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.whole.state == routeClosed, s.whole.trying:
		return admission{wait: s.freed}
	case s.whole.state == routeTrial:
		s.whole.trying = true
		return admission{trial: true, closed: s.closed()}
	}
	return admission{closed: s.closed()}
}

// closed returns the closed topics, sorted.
func (s *routes) closed() []string {
	var list []string
	for topic, r := range s.topics {
		if r.state == routeClosed {
			list = append(list, topic)
		}
	}
	slices.Sort(list)
	return list
}

// released ends an admission that claimed nothing.
func (s *routes) released(a admission) {
	if a.trial {
		s.endTrial()
	}
}

// endTrial ends a trial without a result, because nothing was sent.
func (s *routes) endTrial() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole.trying {
		s.whole.trying = false
		s.free()
	}
}

// begun returns how many batches were judged so far; see attempt.began.
func (s *routes) begun() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged
}

// free wakes the claim loop that waits for the destination.
func (s *routes) free() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// isClosed reports whether the whole destination is closed.
func (s *routes) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole.state == routeClosed
}

// why says why a topic is closed.
func (s *routes) why(topic string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := errTopicClosed.Error()
	if r := s.topics[s.known(topic)]; r != nil && r.err != nil {
		text = ErrorText(fmt.Errorf("%w: %w", errTopicClosed, r.err))
	}
	return text
}

// list returns the status of the destination, and of its topics that are closed or named.
func (s *routes) list() []RouteStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []RouteStatus{s.whole.status()}
	for _, topic := range slices.Sorted(maps.Keys(s.topics)) {
		if r := s.topics[topic]; r.state != routeOpen || s.named[topic] {
			list = append(list, r.status())
		}
	}
	return list
}

// due returns the routes to ping now and, if there are none, how long to wait. Closed routes are pinged again and
// again; open ones after a while without a sign of life. Topics are not pinged while the whole destination is
// closed.
func (s *routes) due(now time.Time) (list []string, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = idlePing
	look := func(r *route) {
		at := r.seen.Add(idlePing)
		switch {
		case r.state == routeClosed:
			at = r.retryAt
		case r.state == routeTrial:
			at = later(at, r.wellSince.Add(idlePing))
		case r.topic != "" && !s.named[r.topic]:
			return
		}
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
		} else {
			list = append(list, r.topic)
		}
	}
	look(s.whole)
	if s.whole.state != routeClosed {
		for _, topic := range slices.Sorted(maps.Keys(s.topics)) {
			look(s.topics[topic])
		}
	}
	return list, wait
}

// answered records the result of a ping. It returns the change if the route opened or closed.
func (s *routes) answered(topic string, now time.Time, err error) (news *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(topic)
	if r == nil {
		return nil
	}
	began := r.since
	if r.answered(now, err) {
		news = &change{RouteStatus: r.status(), err: err, lasted: now.Sub(began)}
	}
	if topic == "" && r.state != routeClosed {
		s.free()
	}
	return news
}

// wake makes keepRoutes look for routes to ping.
func (s *routes) wake() {
	select {
	case s.news <- struct{}{}:
	default: // it is awake
	}
}

// change is news about a route: it opened, closed, or is in doubt.
type change struct {
	RouteStatus
	err error
	// doubts is set for an open route if so many of its events are in doubt that none is blamed.
	doubts int
	// lasted is how long it was closed, and events is how many events it gave back meanwhile. Both are set when it
	// opens.
	lasted time.Duration
	events int
}
