package outbox

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

const (
	// pingFirst and pingMax bound the pauses between two pings of a closed route.
	pingFirst = 250 * time.Millisecond
	pingMax   = 2 * time.Second
	// pingTimeout bounds one ping; a destination that takes longer hangs.
	pingTimeout = 3 * time.Second
	// asideMost is how long an event waits if the destination is unavailable for this event only.
	asideMost = 30 * time.Second
	// idlePing is how long a route may go without a sign of life before it is pinged.
	idlePing = 10 * time.Second
	// maxAsked is the longest Retry-After that a route stays closed for.
	maxAsked = 15 * time.Minute
	// maxStrikes is how many batches in a row may get only unclear answers, and deliver nothing, before their route
	// is closed.
	maxStrikes = 2
)

// RouteStatus is the status of a route: the destination as a whole, or one of its topics.
type RouteStatus struct {
	// Topic is the topic; empty for the destination as a whole.
	Topic string
	// Topicless is set for the route of events without a topic, if the destination needs one.
	Topicless bool
	// Open is whether events are sent on the route.
	Open bool
	// Since is when the route last opened or closed.
	Since time.Time
	// Error says why the route is closed.
	Error string
}

// Name returns the route's name for people.
func (s RouteStatus) Name() string {
	switch {
	case s.Topicless:
		return "events without a topic"
	case s.Topic == "":
		return "destination"
	}
	return "topic " + s.Topic
}

// errNotAsked is why a route is closed before its first ping.
var errNotAsked = errors.New("it has not been asked yet")

// routeState says what is sent on a route.
type routeState int

const (
	routeOpen   routeState = iota // everything
	routeClosed                   // nothing, until a ping at retryAt
	routeTrial                    // a few messages, to find out whether it works
)

// route is what the relay knows of one route.
type route struct {
	topic string // empty for the destination as a whole
	state routeState
	// since is when it opened or closed; trials do not change it.
	since time.Time
	// err is why it is closed.
	err error
	// fresh is set until its first ping.
	fresh bool
	// looks counts the pings and trials that failed since it closed; retryAt is when the next one is due.
	looks   int
	retryAt time.Time
	// trying is set while the messages of a trial are out. wellSince is when a ping last made it ready for a trial.
	// trials counts those that failed since it closed; tried counts how often each of their messages was in one.
	// The next trial takes other messages, if there are any.
	trying    bool
	wellSince time.Time
	trials    int
	tried     map[uuid.UUID]int
	// seen is when it last gave a sign of life.
	seen time.Time
	// delivered counts messages. strikes counts the batches since the last delivery that got only unclear answers.
	delivered int64
	strikes   int
	// standing is whether its deliveries are evidence against what it does not deliver. toldDoubts is when the log
	// last said that they are not.
	standing   standing
	toldDoubts time.Time
	// waiting counts the events given back since it closed.
	waiting int
}

// close closes the route. It reports whether it was open before.
func (r *route) close(now time.Time, err error) (changed bool) {
	asked := min(askedDelay(err), maxAsked)
	switch r.state {
	case routeOpen:
		// A route that closes again soon after it opened is pinged later each time: it comes and goes.
		if r.looks++; r.wellSince.IsZero() || now.Sub(r.since) > idlePing {
			r.looks = 0
		}
		r.since, changed = now, true
	case routeTrial:
		r.looks++
	case routeClosed:
		r.retryAt = later(r.retryAt, now.Add(asked))
		return false
	}
	r.state, r.err, r.trying, r.strikes = routeClosed, err, false, 0
	r.retryAt = now.Add(max(pingDelay(r.looks), asked))
	return changed
}

// open opens the route. It reports whether that is news.
func (r *route) open(now time.Time) (changed bool) {
	changed = r.state != routeOpen && !r.fresh
	if r.state != routeOpen {
		r.since = now
	}
	r.state, r.err, r.fresh, r.trying, r.strikes = routeOpen, nil, false, false, 0
	r.trials, r.tried = 0, nil
	return changed
}

// answered records the result of a ping. A route that answers again is first tried with a few messages, because a
// ping does not prove that it accepts any. If there are no messages to try, it opens after a while all the same.
func (r *route) answered(now time.Time, err error) (changed bool) {
	switch {
	case err == nil && r.fresh:
		r.seen = now
		return r.open(now)
	case err == nil:
		r.seen = now
		switch {
		case r.state == routeClosed:
			r.state, r.wellSince = routeTrial, now
		case r.state == routeTrial && !r.trying && now.Sub(r.wellSince) >= idlePing:
			return r.open(now)
		}
		return false
	case r.state == routeClosed:
		changed = r.fresh
		r.fresh, r.err = false, err
		r.looks++
		r.retryAt = now.Add(pingDelay(r.looks))
		return changed
	}
	return r.close(now, err)
}

// newRoute returns an open route.
func newRoute(topic string, now time.Time) *route {
	return &route{topic: topic, since: now, seen: now, standing: newStanding()}
}

// noteDelivered records messages that got through.
func (r *route) noteDelivered(n int, now time.Time) {
	r.delivered += int64(n)
	r.strikes, r.seen = 0, now
}

// failedTrial remembers a message of a failed trial. It returns how long others may pass it.
func (r *route) failedTrial(id uuid.UUID) time.Duration {
	times, known := r.tried[id]
	if !known && len(r.tried) >= maxTried {
		return 0
	}
	if r.tried == nil {
		r.tried = make(map[uuid.UUID]int)
	}
	r.tried[id] = times + 1
	return min(pingFirst<<min(times, 10), pingMax)
}

// status is closed until a message gets through: a ping does not prove enough.
func (r *route) status() RouteStatus {
	status := RouteStatus{Topic: r.topic, Open: r.state == routeOpen, Since: r.since}
	if r.topic == noTopic {
		status.Topic, status.Topicless = "", true
	}
	if !status.Open && r.err != nil {
		status.Error = ErrorText(r.err)
	}
	return status
}

// pingDelay returns the time before the n-th ping of a closed route, from 0, with jitter.
func pingDelay(n int) time.Duration {
	return jitter(min(pingFirst<<min(n, 10), pingMax))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
