package outbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// StoreError is something that the relay asks of its store, and that fails.
type StoreError struct {
	// Doing is what: "claim", "settle" and the like.
	Doing string
	// Since is when it failed for the first time since it worked, by this process's clock.
	Since time.Time
	// Err is how it failed last.
	Err error

	last time.Time
}

// Error is the fault in words.
func (f *StoreError) Error() string {
	return fmt.Sprintf("%s fails since %s: %s", f.Doing, f.Since.UTC().Format(time.RFC3339), ErrorText(f.Err))
}

// Unwrap is how it failed last.
func (f *StoreError) Unwrap() error { return f.Err }

// StoreError says what the relay's store does not do at present, as a *StoreError: the longest first. It is nil while the
// store works. A relay that cannot claim or settle delivers nothing, or the same over and over: whoever asks whether it is
// ready should be told.
func (r *Relay) StoreError() error {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	if len(r.faults.list) == 0 {
		return nil
	}
	fault := r.faults.list[0]
	return &fault
}

// storeFaults are what the store does not do, in the order in which it ceased to.
type storeFaults struct {
	mu   sync.Mutex
	list []StoreError
}

func (f *storeFaults) note(doing string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.list, func(fault StoreError) bool { return fault.Doing == doing })
	if i < 0 {
		f.list = append(f.list, StoreError{Doing: doing, Since: time.Now()})
		i = len(f.list) - 1
	}
	f.list[i].Err, f.list[i].last = err, time.Now()
}

// settleMemory is how long a settle that failed is remembered while nothing is there to settle: a relay whose events another
// one took meanwhile would never be ready again.
const settleMemory = time.Minute

// end reports whether the last of the faults is over. A claim that works shows that a database is there; only a settle shows
// that one settles.
func (f *storeFaults) end(doing string) (all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.list)
	f.list = slices.DeleteFunc(f.list, func(fault StoreError) bool {
		return fault.Doing != doingSettle || doing == doingSettle || time.Since(fault.last) > settleMemory
	})
	return before > 0 && len(f.list) == 0
}

const (
	doingClaim  = "claim"
	doingSettle = "settle"
)

// storeFailed reports a failure of the store, unless it is only our own end.
func (r *Relay) storeFailed(ctx context.Context, doing string, err error) {
	if ctx.Err() != nil {
		return
	}
	r.faults.note(doing, err)
	r.log.Error("the store failed; trying again", "doing", doing, "error", err)
	each(r.config.Hooks, func(h StoreErrorHook) { h.OnStoreError(err) })
}

// storeWorks says, once, that the store is back.
func (r *Relay) storeWorks(doing string) {
	if r.faults.end(doing) {
		r.log.Info("the store works again")
	}
}
