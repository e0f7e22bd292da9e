package outbox

const (
	// fewDoubted is how many events of a route may be in doubt for each of them to be at fault, however
	// little it has delivered.
	fewDoubted = 3
	// doubtedShare is that one more may be for every so many that it has delivered.
	doubtedShare = 20
	// standingSpan bounds the deliveries that are remembered: what was long ago counts less.
	standingSpan = 1000
)

// standing is whether what a route delivers speaks against the events that it does not. Where many are
// in doubt it does not: nine of ten receivers behind one address are away, or one partition of many.
type standing struct {
	// delivered counts messages.
	delivered int
	// doubted counts the events that came to be in doubt and were not found to be at fault. Those that were
	// delivered in the end are among them until a stretch of deliveries shows that the route is well.
	doubted int
	// stretch is the number of the stretch, left what it lacks, and failing how many different events, of
	// those in doubt, were not delivered in it.
	stretch       int64
	left, failing int
}

func newStanding() standing { return standing{stretch: 1, left: doubtedShare} }

// noteDelivered notes messages that got through. It reports whether they show that the route is well.
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

// noteFailed notes that an event that is in doubt was not delivered.
func (s *standing) noteFailed(d *doubt) {
	if d.stretch != s.stretch {
		d.stretch = s.stretch
		s.failing++
	}
}

// speaks reports whether the route is a witness against the few events that it does not deliver.
func (s *standing) speaks() bool { return s.doubted <= fewDoubted+s.delivered/doubtedShare }
