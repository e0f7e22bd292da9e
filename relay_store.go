package outbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// StoreError is a store operation that keeps failing.
type StoreError struct {
	// Doing is the failing operation: "claim", "settle" and the like.
	Doing string
	// Since is when it first failed after it last worked, by this process's clock.
	Since time.Time
	// Err is the last failure.
	Err error

	last time.Time
}

// Error returns one line: the operation, since when it fails, and the last failure.
func (f *StoreError) Error() string {
	return fmt.Sprintf("%s fails since %s: %s", f.Doing, f.Since.UTC().Format(time.RFC3339), ErrorText(f.Err))
}

// Unwrap returns the last failure.
func (f *StoreError) Unwrap() error { return f.Err }

// StoreError returns the operation that has been failing longest, as a *StoreError, or nil while the store works. A
// relay that cannot claim delivers nothing, and one that cannot settle delivers the same events over and over: a
// readiness check should report either.
func (r *Relay) StoreError() error {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	if len(r.faults.list) == 0 {
		return nil
	}
	fault := r.faults.list[0]
	return &fault
}

// storeFaults are the failing operations, in the order in which they began to fail.
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

// settleMemory is how long a failed settle is remembered while there is nothing to settle. Without a limit, a relay
// whose events another relay took would never be ready again.
const settleMemory = time.Minute

// end removes the faults that a successful operation disproves, and reports whether it removed the last one. A
// successful claim proves that the database is up; only a successful settle proves that settling works.
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

// storeFailed logs a failure of the store, unless it only failed because the relay is stopping.
func (r *Relay) storeFailed(ctx context.Context, doing string, err error) {
	if ctx.Err() != nil {
		return
	}
	r.faults.note(doing, err)
	r.log.Error("the store failed; trying again", "doing", doing, "error", err)
	each(r.config.Hooks, func(h StoreErrorHook) { h.OnStoreError(err) })
}

// storeWorks logs, once, that the store works again.
func (r *Relay) storeWorks(doing string) {
	if r.faults.end(doing) {
		r.log.Info("the store works again")
	}
}
