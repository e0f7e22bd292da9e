package consuming_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox/internal/consuming"
)

// TestQueues gives work of some keys, each of which has to run twice, and sees each key's in
// order. Work that asks to be run again stays at the front of its key: both of its runs come before the
// next work's first.
func TestQueues(t *testing.T) {
	t.Parallel()
	const atOnce, keys, each = 4, 10, 50
	q := consuming.NewQueues(atOnce)
	var mu sync.Mutex
	var all sync.WaitGroup
	ran := make(map[string][]int)
	given := make(chan struct{}) // closed when every key has all its work
	for n := range each {
		for k := range keys {
			key, runs := fmt.Sprint(k), 0
			all.Add(1)
			q.Add(key, func() (bool, time.Duration) {
				<-given
				mu.Lock()
				defer mu.Unlock()
				ran[key] = append(ran[key], n)
				if runs++; runs == 1 {
					return true, time.Millisecond
				}
				all.Done()
				return false, 0
			})
		}
	}
	close(given)
	all.Wait()
	q.Stop()
	if len(ran) != keys {
		t.Errorf("work of %d keys ran, want %d", len(ran), keys)
	}
	for key, list := range ran {
		for i, n := range list {
			if len(list) != 2*each || n != i/2 {
				t.Fatalf("key %s: run %d of %d was of work %d, want %d: %v", key, i, len(list), n, i/2, list)
			}
		}
	}
}

// TestQueuesBound has work of many keys, and of none, that does not end: as much of it runs as may, and no more.
func TestQueuesBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const atOnce, each = 3, 5
		q := consuming.NewQueues(atOnce)
		var running atomic.Int64
		release := make(chan struct{})
		for n := range each {
			for _, key := range []string{"", fmt.Sprint(n)} {
				q.Add(key, func() (bool, time.Duration) {
					running.Add(1)
					<-release
					return false, 0
				})
			}
		}
		for ended := range 2*each - atOnce + 1 {
			synctest.Wait() // until all that may run does
			if n := running.Load(); n != int64(atOnce+ended) {
				t.Errorf("%d were running or done after %d had ended, want %d", n, ended, atOnce+ended)
			}
			release <- struct{}{}
		}
		close(release)
		q.Stop()
	})
}

// TestQueuesWait has work that waits to be run again. It holds up its own key, but neither
// another's nor work without a key; after Stop none of it runs.
func TestQueuesWait(t *testing.T) {
	t.Parallel()
	q := consuming.NewQueues(1)
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

// TestQueuesStop stops queues while work is running: Stop waits for it, and nothing that is behind it begins.
func TestQueuesStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consuming.NewQueues(1)
		release, stopped := make(chan struct{}), make(chan struct{})
		ended := false
		q.Add("a", func() (bool, time.Duration) { <-release; ended = true; return false, 0 })
		for _, key := range []string{"a", "b"} {
			q.Add(key, func() (bool, time.Duration) { t.Errorf("work of key %s began after Stop", key); return false, 0 })
		}
		go func() {
			defer close(stopped)
			q.Stop()
		}()
		synctest.Wait() // until all that can has happened
		select {
		case <-stopped:
			t.Error("Stop did not wait for the work that is running")
		default:
		}
		close(release)
		<-stopped
		synctest.Wait()
		if !ended {
			t.Error("Stop returned before the work that was running")
		}
	})
}
