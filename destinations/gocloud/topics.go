package gocloud

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxTopics is how many topics stay open while nobody publishes to them.
	maxTopics = 100
	// flush is how long closing a topic waits for what is still on its way.
	flush = 10 * time.Second
)

// topics are the open ones, by URL.
type topics struct {
	mu   sync.Mutex
	open map[string]*topic
	uses int // so far
}

func newTopics() *topics { return &topics{open: make(map[string]*topic)} }

// acquire gives an open topic, which is not closed before it is released.
func (ts *topics) acquire(url string) (*topic, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.open[url]
	if t == nil {
		var err error
		if t, err = openTopic(url); err != nil {
			return nil, err
		}
		ts.open[url] = t
	}
	ts.uses++
	t.users, t.used = t.users+1, ts.uses
	return t, nil
}

// release gives a topic back. Those that were not used for longest make room.
func (ts *topics) release(t *topic) {
	ts.mu.Lock()
	t.users--
	var oldest *topic
	if len(ts.open) > maxTopics {
		for _, other := range ts.open {
			if other.users == 0 && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
	}
	if oldest != nil {
		delete(ts.open, oldest.url)
	}
	ts.mu.Unlock()
	if oldest != nil {
		_ = oldest.close(context.Background()) // nothing is on its way
	}
}

// drop closes a topic at once, whoever uses it. Nothing is sent to it after drop has returned.
func (ts *topics) drop(t *topic) {
	ts.mu.Lock()
	if ts.open[t.url] == t {
		delete(ts.open, t.url)
	}
	ts.mu.Unlock()
	t.drop.Do(func() {
		t.dropped.Store(true)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = t.close(ctx) // it says that it did not wait, as it should not
	})
}

func (ts *topics) close() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), flush)
	defer cancel()
	var errs []error
	for _, t := range ts.open {
		errs = append(errs, t.close(ctx))
	}
	clear(ts.open)
	return errors.Join(errs...)
}
