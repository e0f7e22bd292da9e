package outbox

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

const (
	// pingFirst and pingMax bound the pauses between two looks at a closed route.
	pingFirst = 250 * time.Millisecond
	pingMax   = 2 * time.Second
	// pingTimeout bounds one ping: who takes longer hangs.
	pingTimeout = 3 * time.Second
	// asideMost is how long an event waits for which alone the destination is away.
	asideMost = 30 * time.Second
	// idlePing is how long a route may go without a sign of life before it is pinged.
	idlePing = 10 * time.Second
	// maxAsked is the longest time for which a destination's Retry-After closes its route.
	maxAsked = 15 * time.Minute
	// maxStrikes is how often running a route may answer unclearly, and deliver nothing, before
	// it is closed.
	maxStrikes = 2
)

// RouteStatus is how a route to the destination is doing. A route is the destination as a
// whole, or one topic of it.
type RouteStatus struct {
	// Topic is the topic; empty for the destination as a whole.
	Topic string
	// Topicless is set for events without a topic, where the destination needs one.
	Topicless bool
	// Open is whether events are sent there.
	Open bool
	// Since is when it was last opened or closed.
	Since time.Time
	// Error says why it is closed.
	Error string
}

// Name is what the route is called where people read it.
func (s RouteStatus) Name() string {
	switch {
	case s.Topicless:
		return "events without a topic"
	case s.Topic == "":
		return "destination"
	}
	return "topic " + s.Topic
}

// errNotAsked is why a route is closed before the first ping.
var errNotAsked = errors.New("it has not been asked yet")

// routeState is what is sent on a route.
type routeState int

const (
	routeOpen   routeState = iota // everything
	routeClosed                   // nothing, until a look at retryAt
	routeTrial                    // a few messages, to find out
)

// route is what the relay knows of one route.
type route struct {
	topic string // empty for the destination as a whole
	state routeState
	// since is when it was opened or closed; trials do not change it.
	since time.Time
	// err is why it is closed.
	err error
	// fresh is set until it has been asked for the first time.
	fresh bool
	// looks counts the pings and trials that failed since it was closed, and retryAt is when the
	// next one is due.
	looks   int
	retryAt time.Time
	// trying is set while the messages of a trial are out, and wellSince is when a ping last made it
	// ready for one. Trials counts those that failed since it was closed, and tried their messages,
	// with how often: the next one is made with others, if there are any.
	trying    bool
	wellSince time.Time
	trials    int
	tried     map[uuid.UUID]int
	// seen is when it last showed that it is there.
	seen time.Time
	// delivered counts messages, and strikes the batches since the last of them that got
	// nothing but unclear answers.
	delivered int64
	strikes   int
	// standing is whether what is delivered speaks against what is not, and toldDoubts when people last
	// heard that it does not.
	standing   standing
	toldDoubts time.Time
	// waiting counts the events that were given back since it was closed.
	waiting int
}

// close stops sending. It reports whether the route was open before.
func (r *route) close(now time.Time, err error) (changed bool) {
	asked := min(askedDelay(err), maxAsked)
	switch r.state {
	case routeOpen:
		// One that was open for a moment only is looked at later each time: it comes and goes.
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

// open sends everything again. It reports whether that is news.
func (r *route) open(now time.Time) (changed bool) {
	changed = r.state != routeOpen && !r.fresh
	if r.state != routeOpen {
		r.since = now
	}
	r.state, r.err, r.fresh, r.trying, r.strikes = routeOpen, nil, false, false, 0
	r.trials, r.tried = 0, nil
	return changed
}

// answered notes what became of a ping. A route that answers again is tried with a few messages
// first: a ping says little about whether it takes any. Where there is nothing to try it with, it is
// open after some time all the same.
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

// newRoute is a route that is open.
func newRoute(topic string, now time.Time) *route {
	return &route{topic: topic, since: now, seen: now, standing: newStanding()}
}

// noteDelivered notes messages that got through.
func (r *route) noteDelivered(n int, now time.Time) {
	r.delivered += int64(n)
	r.strikes, r.seen = 0, now
}

// failedTrial remembers the messages of a trial. It returns how long others may pass this one.
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

// status is closed until a message got through: a ping says little.
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

// pingDelay is the time before the n-th look at a closed route, from 0, with jitter.
func pingDelay(n int) time.Duration {
	return jitter(min(pingFirst<<min(n, 10), pingMax))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
