package compliance

import (
	"time"

	"github.com/packfinderz/outbox"
)

// recent is how long a failure is told. What failed here may have been handled by another worker, and nothing may come after it.
const recent = time.Minute

// failure is a notification that could not be written.
type failure struct {
	err error
	at  time.Time
}

// note remembers what became of the last notification.
func (h *Handler) note(err error) {
	if err == nil || outbox.Classify(err) == outbox.ClassTerminal { // the database is well
		h.failed.Store(nil)
		return
	}
	h.failed.Store(&failure{err, time.Now()})
}

// Check is why the last notification could not be written, if that was a short time ago, and nil otherwise. Ready asks whether the
// statement can be planned; this knows what happened when it ran.
func (h *Handler) Check() error {
	if f := h.failed.Load(); f != nil && time.Since(f.at) < recent {
		return f.err
	}
	return nil
}
