//go:build unix

package chaos

// The faults. Each waits for a random moment at which a relay is at work, and is counted only if there were events to
// hurt: a fault that hits an idle relay proves nothing.

import (
	"context"
	"syscall"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/process"
)

const (
	// maxMoment is the longest random wait between a relay's being at work and the fault.
	maxMoment = 5 * time.Millisecond
	// missesPerFault bounds how many faults may miss, for each that must meet events.
	missesPerFault = 4
)

// each makes faults until enough of them have met events in flight. A fault says whether it has.
func (r *run) each(fault func(number int) (met bool)) {
	r.Helper()
	for r.met < r.faults {
		if r.faulted >= r.faults*(1+missesPerFault) {
			r.Fatalf("only %d of %d faults met events in flight", r.met, r.faulted)
		}
		r.faulted++
		if fault(r.faulted) {
			r.met++
		}
	}
}

// victim asks for more events and returns, at a random moment while they are being relayed, a relay that is at work.
func (r *run) victim() *relay {
	r.Helper()
	r.producers.ask(r.share())
	return r.atWork(r.share() / 4)
}

// atWork returns, at a random moment in the next n events of a relay, that relay.
func (r *run) atWork(n int) *relay {
	r.Helper()
	far := 1 + r.choose.Int64N(int64(max(n, 1)*lineBytes))
	before := r.sizes()
	var victim *relay
	r.await("a relay to be at work", func() bool {
		r.keepBusy()
		for i, relay := range r.relays {
			if !relay.frozen && r.inbox.size(relay)-before[i] >= far {
				victim = relay
			}
		}
		return victim != nil
	})
	if r.choose.IntN(2) == 0 { // else at once: what has just arrived can hardly be settled
		<-time.After(time.Duration(r.choose.Int64N(int64(maxMoment))))
	}
	return victim
}

// keepBusy sees to it that there is something to relay, or under a steady load that all producers have work.
func (r *run) keepBusy() {
	switch {
	case r.steady:
		r.producers.flood()
	case r.producers.idle():
		r.producers.ask(batchSize)
	}
}

func (r *run) sizes() []int64 {
	sizes := make([]int64, len(r.relays))
	for i, relay := range r.relays {
		sizes[i] = r.inbox.size(relay)
	}
	return sizes
}

// kill ends a relay with SIGKILL and starts it again.
func (r *run) kill(number int) (met bool) {
	r.Helper()
	victim := r.victim()
	victim.life.Fault = number
	victim.Signal(r.T, syscall.SIGKILL)
	if code := victim.Wait(r.T); code != -1 {
		r.Fatalf("exit code %d of a killed relay", code)
	}
	met = r.undelivered() > 0
	r.start(victim)
	return met
}

// terminated ends a relay with SIGTERM and starts it again. It is no excuse for anything.
func (r *run) terminated(int) (met bool) {
	r.Helper()
	victim := r.victim()
	r.terminate(victim)
	met = r.undelivered() > 0
	r.start(victim)
	return met
}

// stop suspends a relay until its leases have run out and the other has taken over what it held, then lets it go on
// under new load. It has met its fault if it found that its claims were no longer its own.
func (r *run) stop(number int) (met bool) {
	r.Helper()
	victim := r.victim()
	victim.life.Fault = number
	victim.Signal(r.T, syscall.SIGSTOP)
	busy := r.undelivered() > 0
	size := r.inbox.size(victim)
	leaseEnd := time.NewTimer(r.lease)
	defer leaseEnd.Stop()
	<-leaseEnd.C
	r.await("the other relay to take over", func() bool { return r.producers.idle() && r.undelivered() == 0 })
	r.producers.ask(r.share())
	victim.Signal(r.T, syscall.SIGCONT)
	r.await("the stopped relay to go on", func() bool {
		return r.inbox.size(victim) > size || (r.producers.idle() && r.undelivered() == 0)
	})
	// A life of its own for each stop, so that duplicates can be told apart.
	r.terminate(victim)
	met = busy && victim.Logs("lease lost", "could not be settled")
	r.start(victim)
	return met
}

// restarting crashes the server and brings it back. Both relays must find it by themselves and go on.
func (r *run) restarting(server *pgserver.Server) func(number int) (met bool) {
	return func(number int) (met bool) {
		r.Helper()
		r.victim()
		busy := r.undelivered() > 0
		for _, relay := range r.relays {
			relay.life.Fault = number
		}
		before := r.sizes()
		ctx, cancel := context.WithTimeout(r.Context(), process.Patience)
		defer cancel()
		if err := server.Restart(ctx, pgserver.Immediate); err != nil {
			r.Fatal(err)
		}
		for i, relay := range r.relays {
			r.await("relay "+relay.name+" to go on after the restart", func() bool {
				r.keepBusy()
				return r.inbox.size(relay) > before[i]
			})
			met = met || relay.Logs("settle failed", "could not be settled", "the store failed")
		}
		for _, relay := range r.relays {
			r.terminate(relay)
			r.start(relay)
		}
		return busy && met
	}
}
