package compliance

import (
	"time"

	"github.com/packfinderz/outbox"
)

// recent is how long a failure is reported: another worker may have handled the event since, and no other may follow.
const recent = time.Minute

// failure is a notification that could not be written.
type failure struct {
	err error
	at  time.Time
}

// note remembers whether the last notification could be written.
func (h *Handler) note(err error) {
	if err == nil || outbox.Classify(err) == outbox.ClassTerminal { // the database is well
		h.failed.Store(nil)
		return
	}
	h.failed.Store(&failure{err, time.Now()})
}

// Check returns why the last notification could not be written, if that was within the last minute. Ready only plans
// the statement; Check knows what happened when it ran.
func (h *Handler) Check() error {
	if f := h.failed.Load(); f != nil && time.Since(f.at) < recent {
		return f.err
	}
	return nil
}
