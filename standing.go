package outbox

const (
	// fewDoubted is how many events of a route may be in doubt and still be blamed, however little the route has
	// delivered.
	fewDoubted = 3
	// doubtedShare is how many deliveries allow one more event in doubt.
	doubtedShare = 20
	// standingSpan bounds how many deliveries are remembered: old ones count less.
	standingSpan = 1000
)

// standing decides whether a route's deliveries are evidence against the events that it does not deliver. They are
// not if many events are in doubt: nine of ten receivers behind one address may be down, or one partition of many.
type standing struct {
	// delivered counts messages.
	delivered int
	// doubted counts the events that came into doubt and were not found at fault. Events that were delivered later
	// still count until a stretch of deliveries shows that the route works.
	doubted int
	// stretch is the number of the current stretch of deliveries, left is how many deliveries it lacks, and failing
	// is how many events in doubt failed during it.
	stretch       int64
	left, failing int
}

func newStanding() standing { return standing{stretch: 1, left: doubtedShare} }

// noteDelivered records messages that got through. It reports whether they show that the route works.
func (s *standing) noteDelivered(n int) (well bool) {
	if s.delivered += n; s.delivered > standingSpan {
		s.delivered = standingSpan / 2
	}
	if s.left -= n; s.left > 0 {
		return false
	}
	well = s.failing <= fewDoubted
	s.stretch, s.left, s.failing = s.stretch+1, doubtedShare, 0
	return well
}

// noteFailed records that an event in doubt was not delivered.
func (s *standing) noteFailed(d *doubt) {
	if d.stretch != s.stretch {
		d.stretch = s.stretch
		s.failing++
	}
}

// speaks reports whether the route's deliveries are evidence against the few events that it does not deliver.
func (s *standing) speaks() bool { return s.doubted <= fewDoubted+s.delivered/doubtedShare }
