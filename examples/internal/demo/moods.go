package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
)

// moods is a publisher with bad days: some events fail and arrive later, some are poison.
type moods struct {
	*natsjs.Publisher
	mu    sync.Mutex
	tries map[uuid.UUID]int
}

// hiccups is how often an event fails that has a bad day.
const hiccups = 2

var (
	errHiccup = errors.New("the carrier's system is busy")
	errPoison = outbox.Rejected(errors.New("no carrier delivers to that address; correct it, then retry"))
)

// Publish publishes what is not to fail.
func (m *moods) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	failed := make(map[string]bool) // keys
	var good []outbox.Message
	var places []int
	for i := range messages {
		switch err := m.mood(&messages[i]); {
		case failed[messages[i].Key]:
			errs[i] = outbox.ErrNotAttempted
		case err != nil:
			errs[i] = err
			failed[messages[i].Key] = true
		default:
			good, places = append(good, messages[i]), append(places, i)
		}
	}
	if len(good) > 0 {
		for i, err := range m.Publisher.Publish(ctx, good) {
			errs[places[i]] = err
		}
	}
	return errs
}

// mood decides what an event has to go through.
func (m *moods) mood(message *outbox.Message) error {
	poison := message.Type == steps[1] && poisoned(message.Key)
	hiccup := message.Type == steps[0] && number(message.Key)%15 == 4
	if !poison && !hiccup {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries[message.ID]++
	switch {
	case poison && m.tries[message.ID] == 1:
		return errPoison
	case hiccup && m.tries[message.ID] <= hiccups:
		return errHiccup
	}
	return nil
}

// poisoned is whether the payment of an order is dead until a person retries it.
func poisoned(key string) bool { return number(key)%20 == 7 }

// number is an order's, of its key.
func number(key string) (n int64) {
	_, _ = fmt.Sscanf(key, keyFormat, &n) // the shop's own
	return n
}
