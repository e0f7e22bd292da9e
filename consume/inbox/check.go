package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxConsumer is the longest name of a consumer, in bytes.
const MaxConsumer = 200

// Check rejects a consumer's name that is empty, too long, not UTF-8 or has control characters, and an event
// without an id: all such events would look like one.
func Check(consumer string, event uuid.UUID) error {
	switch {
	case consumer == "":
		return errors.New("inbox: the consumer has no name")
	case len(consumer) > MaxConsumer:
		return fmt.Errorf("inbox: the consumer's name has %d bytes; at most %d", len(consumer), MaxConsumer)
	case !utf8.ValidString(consumer):
		return errors.New("inbox: the consumer's name is not valid UTF-8")
	case strings.ContainsFunc(consumer, unicode.IsControl):
		return fmt.Errorf("inbox: the consumer's name %q contains a control character", consumer)
	case event == uuid.Nil:
		return errors.New("inbox: the event has no id")
	}
	return nil
}

// TTL is how long an inbox remembers, on a store that forgets by itself.
type TTL struct {
	// Processing is how long a claim lasts unless it is renewed: a killed consumer blocks its event for at most
	// this time. Default a minute; at least a second.
	Processing time.Duration
	// Done is how long a handled event is remembered. Default 30 days.
	Done time.Duration
	// Horizon is how long after its first delivery the broker may deliver an event again. If it is set, Done must
	// not be shorter: the event would be handled twice.
	Horizon time.Duration
}

// Defaults of TTL.
const (
	DefaultProcessing = time.Minute
	DefaultDone       = 720 * time.Hour
)

// WithDefaults fills in defaults and rejects what cannot work.
func (t TTL) WithDefaults() (TTL, error) {
	t.Processing = cmp.Or(t.Processing, DefaultProcessing)
	t.Done = cmp.Or(t.Done, DefaultDone)
	switch {
	case t.Processing < time.Second:
		return t, fmt.Errorf("inbox: the processing TTL is %s; choose a second or more", t.Processing)
	case t.Done < t.Processing:
		return t, fmt.Errorf("inbox: handled events are remembered for %s, less than the processing TTL of %s", t.Done, t.Processing)
	}
	return t, CheckHorizon(t.Done, t.Horizon)
}

// CheckHorizon returns an error if handled events would be forgotten while they may still be delivered again. A
// horizon of zero is not set and always passes.
func CheckHorizon(remembered, horizon time.Duration) error {
	switch {
	case horizon < 0:
		return fmt.Errorf("inbox: the redelivery horizon is %s", horizon)
	case remembered < horizon:
		return fmt.Errorf("inbox: handled events would be forgotten after %s, but may be delivered again for %s", remembered, horizon)
	}
	return nil
}
