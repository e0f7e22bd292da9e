//go:build unix

package chaos

// All faults at once, on the stream: rounds in which one relay sleeps past its lease, another is killed, a third is
// asked to end, and a fourth comes or goes, while the writers write on. What happened is counted, because a storm that
// did not blow proves nothing.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"
)

// moment is in how many events of a relay a fault hits it.
const moment = 200

// storm is a run of the stream under all faults.
type storm struct {
	*run
	stream  *stream
	mailbox *mailbox
	guest   *relay // comes and goes
	visits  bool   // it is there
	killed  []*Incarnation
	refused int // stopped relays whose settle was refused
	limits  Limits
	counted map[string]int
}

func newStorm(r *run) *storm {
	r.Helper()
	stream, isStream := r.oracle.(*stream)
	mailbox, isMailbox := r.inbox.(*mailbox)
	if !isStream || !isMailbox {
		r.Fatalf("%T and %T are not the stream and its mailbox", r.oracle, r.inbox)
	}
	return &storm{
		run: r, stream: stream, mailbox: mailbox, guest: &relay{name: "guest"},
		limits: Limits{ByFault: make(map[int]int)}, counted: make(map[string]int),
	}
}

// blow makes rounds of faults until the writers are done: some at least, and until a kill or a stop has met a page in
// flight.
func (s *storm) blow(atLeast int, eachRound func(round int)) {
	s.Helper()
	for round := 1; round <= atLeast || s.producers.done() < s.events || s.missed(); round++ {
		if round > atLeast*(1+missesPerFault) && s.missed() {
			s.Fatalf("no kill or stop of %d rounds met a page in flight", round)
		}
		if !s.calm() {
			break // for the verdict
		}
		s.round()
		eachRound(round)
	}
	if s.visits {
		s.leave()
	}
}

// metPages is what a kill or a stop must have done to prove something.
const metPages = "kills and stops that met pages in flight"

// missed reports whether all kills and stops have missed so far.
func (s *storm) missed() bool {
	s.counted[metPages] = s.refused
	for _, life := range s.killed {
		if s.mailbox.cameAgain(life) > 0 {
			s.counted[metPages]++
		}
	}
	return s.counted[metPages] == 0
}

// round is one of each fault.
func (s *storm) round() {
	s.Helper()
	asleep, had := s.freeze()
	lost := s.killOne()
	s.handOver()
	if s.visits {
		s.leave()
	} else {
		s.visit()
	}
	s.takenOver(had)
	s.thaw(asleep, had) // at once, while others work through what it left
	s.takenOver(lost)
}

// calm waits, while the writers go on, until every relay has a share and everything that is committed by now has
// arrived: nobody waits for a transaction that is still open, and faults do not pile up.
func (s *storm) calm() bool {
	s.Helper()
	s.await("every relay to have a share", func() bool {
		s.keepBusy()
		return !slices.ContainsFunc(s.relays, func(relay *relay) bool { return len(s.holdings(relay)) == 0 })
	})
	return s.arrives(s.mailbox, "what was committed before the faults")
}

// strike sends a signal to a relay at work: at any moment, or just when a letter of it has come, which it can hardly have
// settled.
func (s *storm) strike(signal syscall.Signal) *relay {
	s.Helper()
	if s.choose.IntN(4) == 0 {
		victim := s.atWork(moment)
		victim.Signal(s.T, signal)
		return victim
	}
	letters := 1 + s.choose.IntN(10)
	struck := make(chan *relay, 1)
	s.mailbox.lieInWait(func(name string) (done bool) {
		i := slices.IndexFunc(s.relays, func(r *relay) bool { return r.name == name && !r.frozen })
		if letters--; i < 0 || letters > 0 || s.relays[i].Send(signal) != nil {
			return false
		}
		struck <- s.relays[i]
		return true
	})
	var victim *relay
	s.await("a letter", func() bool {
		s.keepBusy()
		select {
		case victim = <-struck:
		default:
		}
		return victim != nil
	})
	return victim
}

// hit notes that a fault hits a relay, and how many surplus deliveries that excuses. It returns the shards the relay has.
func (s *storm) hit(victim *relay, excused int) []holding {
	s.Helper()
	s.faulted++
	victim.life.Fault = s.faulted
	s.limits.ByFault[s.faulted] = excused
	return s.holdings(victim)
}

// freeze suspends a relay at work.
func (s *storm) freeze() (asleep *relay, had []holding) {
	s.Helper()
	asleep = s.strike(syscall.SIGSTOP)
	asleep.frozen = true
	return asleep, s.hit(asleep, inFlight)
}

// thaw lets a relay go on whose shards others have. It must notice.
func (s *storm) thaw(asleep *relay, had []holding) {
	s.Helper()
	size := s.inbox.size(asleep)
	asleep.Signal(s.T, syscall.SIGCONT)
	asleep.frozen = false
	s.await("the stopped relay to go on", func() bool {
		s.keepBusy()
		return s.inbox.size(asleep) > size
	})
	s.terminate(asleep)
	s.counted["stops past the lease"]++
	if len(had) > 0 && asleep.Logs("lease lost") {
		s.refused++
	}
	s.start(asleep)
}

// killOne kills a relay at work, starts it again and returns what it had.
func (s *storm) killOne() []holding {
	s.Helper()
	victim := s.strike(syscall.SIGKILL)
	held := s.hit(victim, concurrency*batchSize)
	s.killed = append(s.killed, victim.life)
	if code := victim.Wait(s.T); code != -1 {
		s.Fatalf("exit code %d of a killed relay", code)
	}
	s.counted["kills"]++
	s.start(victim)
	return held
}

// handOver ends a relay as an operator does, and starts it again. It excuses nothing.
func (s *storm) handOver() {
	s.Helper()
	victim := s.strike(syscall.SIGTERM)
	victim.MustSucceed(s.T)
	s.counted["hand-overs"]++
	s.start(victim)
}

// visit starts the guest and waits until it has a share.
func (s *storm) visit() {
	s.Helper()
	s.start(s.guest)
	s.visits = true
	s.await("the guest to get a share", func() bool {
		s.keepBusy()
		return len(s.holdings(s.guest)) > 0
	})
	s.counted["rebalances"]++
}

func (s *storm) leave() {
	s.Helper()
	if len(s.holdings(s.guest)) > 0 {
		s.counted["rebalances"]++
	}
	s.terminate(s.guest)
	s.visits = false
}

func (s *storm) holdings(relay *relay) []holding {
	s.Helper()
	held, err := s.stream.holdings(s.Context(), relay.PID())
	if err != nil {
		s.Fatal(err)
	}
	return held
}

// takenOver waits until others have some shards.
func (s *storm) takenOver(held []holding) {
	s.Helper()
	s.await("others to take shards over", func() bool {
		s.keepBusy()
		n, err := s.stream.taken(s.Context(), held)
		s.check(err)
		return n == len(held)
	})
	s.counted["shards taken over"] += len(held)
}

// summary prints what happened, and fails the test over what did not.
func (s *storm) summary(report *Report, took time.Duration) {
	s.Helper()
	var lines strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.counted)) {
		fmt.Fprintf(&lines, "\n%8d  %s", s.counted[what], what)
		if s.counted[what] == 0 {
			s.Errorf("%s: none; the run proves nothing of them", what)
		}
	}
	s.Logf("%d events in %s: lost %d, twice %d (at most %d by one fault), inverted %d, longest from commit to arrival %s%s",
		report.Events, took.Round(time.Millisecond), len(report.Lost), report.Twice, report.MaxPerFault(), len(report.Inversions),
		report.MaxLag.Round(time.Millisecond), lines.String())
}

// rest leaves the relays alone for a while. They must not deliver anything.
func (s *storm) rest() {
	s.Helper()
	before := s.sizes()
	pause(s.Context(), 10*poll)
	for i, size := range s.sizes() {
		if size != before[i] {
			s.Errorf("relay %s delivered %d bytes when there was nothing to deliver", s.relays[i].name, size-before[i])
		}
	}
}
