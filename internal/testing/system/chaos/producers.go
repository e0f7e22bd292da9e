//go:build unix

package chaos

// The producers: transactions made side by side, and the record of what each of them did.

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// producerRetry is the pause after a database that does not answer.
const producerRetry = 20 * time.Millisecond

// errRollback makes a transaction roll back on purpose.
var errRollback = errors.New("rolled back on purpose")

// job makes one transaction.
type job func(ctx context.Context)

// load is a kind of work that producers do.
type load interface {
	// draw chooses a transaction, and says how many events it commits.
	draw(choose *rand.Rand) (do job, events int)
}

// ledger is the record of what became of events, and of what the producers met.
type ledger struct {
	mu         sync.Mutex
	committed  map[uuid.UUID]time.Time // when the commit was answered
	rolledBack int
	repeated   int // transactions whose commit was answered by an error, and that had happened
	err        error
}

func (l *ledger) commit(ids []uuid.UUID) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.committed[id] = now
	}
}

func (l *ledger) rollBack(events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rolledBack += events
}

func (l *ledger) repeat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.repeated++
}

// trouble is what made producers give up, if anything did.
func (l *ledger) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, err)
}

// producers do what they are asked for.
type producers struct {
	*ledger
	count  int
	load   load
	choose *rand.Rand
	jobs   chan job
	open   atomic.Int64 // jobs that are asked for and not done
	wg     sync.WaitGroup
	ending sync.Once
}

func startProducers(ctx context.Context, count int, load load, ledger *ledger, choose *rand.Rand) *producers {
	p := &producers{
		ledger: ledger, count: count, load: load, choose: choose,
		// Room for every job of the largest run: asking never blocks.
		jobs: make(chan job, 1<<18),
	}
	for range count {
		p.wg.Go(func() {
			for do := range p.jobs {
				do(ctx)
				p.open.Add(-1)
			}
		})
	}
	return p
}

// ask asks for transactions that commit at least n events in all.
func (p *producers) ask(n int) {
	for n > 0 {
		do, events := p.load.draw(p.choose)
		n -= events
		p.open.Add(1)
		p.jobs <- do
	}
}

// flood asks for more as soon as there is not enough for all producers.
func (p *producers) flood() {
	if p.open.Load() < int64(p.count) {
		p.ask(batchSize)
	}
}

// sofar are the events that are committed.
func (p *producers) sofar() []uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.committed))
}

// done is how many events are committed.
func (p *producers) done() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.committed)
}

// idle reports whether everything asked for is done.
func (p *producers) idle() bool { return p.open.Load() == 0 }

// finish waits for what was asked for and ends the producers. Once is enough.
func (p *producers) finish() error {
	p.ending.Do(func() { close(p.jobs) })
	p.wg.Wait()
	return p.trouble()
}

// pause waits, but not past the end of the test.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
