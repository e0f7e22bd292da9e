package outbox

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxTopics bounds the topics whose routes are kept while they are open.
const maxTopics = 10_000

// routes are the ways to the destination: the whole of it, and its topics. Topics that never
// gave trouble, and that nobody named, are not in it.
type routes struct {
	mu     sync.Mutex
	whole  *route
	topics map[string]*route
	// named are the topics that are asked for although nothing was sent to them yet.
	named map[string]bool
	// suspects are the events of which it is not known whether they are at fault.
	suspects suspects
	// judged counts the batches that were judged.
	judged int64
	// news is told when a route has to be looked at sooner; freed is closed when the
	// destination may be used again.
	news  chan struct{}
	freed chan struct{}
}

// newRoutes begins with a destination that has to be asked first, unless it cannot be.
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

// noTopic is the route of events without a topic, where the destination needs one. No topic is called so:
// PostgreSQL's texts have no such character.
const noTopic = "\x00"

// known is a message's topic as the routes know it.
func (s *routes) known(topic string) string {
	if topic == "" && s.topics[noTopic] != nil {
		return noTopic
	}
	return topic
}

// topicOf is the topic of a message that was tried, as the routes know it.
func (s *routes) topicOf(a *attempt, i int) string {
	if topic := a.topic(i); topic != "" || !isOneOf(a.errs[i], ErrNoTopic) {
		return s.known(topic)
	}
	return noTopic
}

// of is the route of a topic that gave trouble before; nil for one that did not.
func (s *routes) of(topic string) *route {
	if topic == "" {
		return s.whole
	}
	return s.topics[topic]
}

// make is the route of a topic, new if need be.
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
	// trial is set when the batch is to find out whether the destination is back.
	trial bool
	// closed are the topics whose events are to be left.
	closed []string
}

// admit asks for leave to claim. With a trial it has to be followed by endTrial.
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

// closed are the topics to which nothing is sent, in order.
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

// released ends an admission with which nothing was claimed.
func (s *routes) released(a admission) {
	if a.trial {
		s.endTrial()
	}
}

// endTrial ends a trial that found nothing out, because nothing was sent.
func (s *routes) endTrial() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole.trying {
		s.whole.trying = false
		s.free()
	}
}

// begun is the number that a batch has from its beginning: see attempt.began.
func (s *routes) begun() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged
}

// free wakes those that wait for the destination.
func (s *routes) free() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// isClosed reports whether nothing at all is sent.
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

// list is the status of the destination, and of its topics that are closed or named.
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

// due are the routes to look at now and, if there are none, how long there is nothing to do.
// Closed ones are looked at again and again; open ones when nothing was heard of them for long.
// Topics are left alone while the whole destination is away.
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

// answered notes what became of a ping, and returns the route's status if that is news.
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

// wake has the routes looked at again.
func (s *routes) wake() {
	select {
	case s.news <- struct{}{}:
	default: // it is awake
	}
}

// change is a route that was opened or closed.
type change struct {
	RouteStatus
	err error
	// doubts is set for a route that is open, and of which so many events are in doubt that none is blamed.
	doubts int
	// lasted is how long it was closed, and events how many were given back meanwhile; when it
	// was opened.
	lasted time.Duration
	events int
}
