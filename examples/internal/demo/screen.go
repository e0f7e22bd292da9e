package demo

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/packfinderz/outbox"
)

// showEvery is the shortest time between two delivered events that are shown.
const showEvery = 400 * time.Millisecond

// screen shows what happens. It is a hook of the relay.
type screen struct {
	mu              sync.Mutex
	out             io.Writer
	shown           time.Time
	delivered, dead int64
}

// say prints a line. A screen that is gone is no reason to stop.
func (s *screen) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...) // the screen may be one of args
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("%s", line)
}

func (s *screen) print(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// OnSettle shows some of the delivered events, and all that failed.
func (s *screen) OnSettle(report outbox.BatchReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range report.Messages {
		m, outcome := &report.Messages[i], &report.Outcomes[i]
		switch outcome.Kind {
		case outbox.Delivered:
			s.delivered++
			if time.Since(s.shown) < showEvery {
				continue
			}
			s.shown = time.Now()
			s.print("delivered  %-10s %-13s %s, %s after its transaction began", m.Key, m.Type, m.Payload,
				time.Since(m.CreatedAt).Round(100*time.Microsecond))
		case outbox.Failed:
			s.print("failed     %-10s %-13s attempt %d: %s; again in %s, and its key waits", m.Key, m.Type, m.Attempt, outcome.Error,
				outcome.Delay.Round(100*time.Millisecond))
		case outbox.Died:
			s.dead++
			s.print("dead       %-10s %-13s %s", m.Key, m.Type, outcome.Error)
		case outbox.Released, outbox.Stopped: // it was not tried
		}
	}
}

// OnRoute shows an outage.
func (s *screen) OnRoute(status outbox.RouteStatus) {
	if status.Open {
		s.say("outage     the broker is back")
	} else {
		s.say("outage     the relay sees it: nothing is counted, events wait")
	}
}

// String is what was seen so far.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d events delivered, %d died", s.delivered, s.dead)
}
