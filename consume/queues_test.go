package consume_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/packfinderz/outbox/consume"
)

// TestQueues gives work of some keys, each of which has to run twice, and sees each key's in
// order and no more at once than allowed.
func TestQueues(t *testing.T) {
	t.Parallel()
	const atOnce, keys, each = 4, 10, 50
	q := consume.NewQueues(atOnce)
	var mu sync.Mutex
	var all sync.WaitGroup
	running, most := 0, 0
	done := make(map[string][]int)
	for n := range each {
		for k := range keys {
			key, runs := fmt.Sprint(k), 0
			all.Add(1)
			q.Add(key, func() (bool, time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				running++
				most = max(most, running)
				mu.Unlock()
				mu.Lock()
				running--
				if runs++; runs == 1 {
					return true, time.Millisecond
				}
				done[key] = append(done[key], n)
				all.Done()
				return false, 0
			})
		}
	}
	all.Wait()
	q.Stop()
	if most > atOnce || len(done) != keys {
		t.Errorf("%d at once, of %d keys", most, len(done))
	}
	for key, list := range done {
		for n := range each {
			if len(list) != each || list[n] != n {
				t.Fatalf("key %s: %v", key, list)
			}
		}
	}
}

// TestQueuesWait has work that waits to be run again. It holds up its own key, but neither
// another's nor work without a key; after Stop none of it runs.
func TestQueuesWait(t *testing.T) {
	t.Parallel()
	q := consume.NewQueues(1)
	failed, passed := make(chan struct{}), make(chan string, 2)
	q.Add("a", func() (bool, time.Duration) { close(failed); return true, time.Hour })
	q.Add("a", func() (bool, time.Duration) { t.Error("it overtook its key"); return false, 0 })
	<-failed
	for _, key := range []string{"b", ""} {
		q.Add(key, func() (bool, time.Duration) { passed <- key; return false, 0 })
		select {
		case <-passed:
		case <-time.After(10 * time.Second):
			t.Fatalf("key %q waits for another", key)
		}
	}
	q.Stop()
	q.Add("c", func() (bool, time.Duration) { t.Error("it ran after Stop"); return false, 0 })
}
