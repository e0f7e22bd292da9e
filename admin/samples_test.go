package admin

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox/ops"
)

// TestSamplesWhileWatched: however many watch, the database is asked once in a while; when nobody
// does, it is not asked. Time is the bubble's own, and passes at once.
func TestSamplesWhileWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := newSampler(t.Context(), func(context.Context) (*ops.Overview, error) {
			asked.Add(1)
			return &ops.Overview{At: time.Now(), Backlog: ops.Count{N: asked.Load()}, Delivered: &ops.Count{N: 7}}, nil
		})
		pass := func(d time.Duration) { <-time.After(d) }
		for range 100 {
			if _, _, err := s.watch(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("a hundred watchers ask %d times", n)
		}
		pass(20*sampleEvery + time.Millisecond)
		overview, samples, err := s.watch(t.Context())
		if err != nil || len(samples) != 21 || overview.Backlog.N != 21 {
			t.Errorf("%d samples, %+v, %v", len(samples), overview, err)
		}
		if last := samples[20]; last.Delivered != 7 || last.Failed != -1 {
			t.Errorf("the last sample is %+v", last)
		}
		pass(10 * sampleIdle)
		before := asked.Load()
		pass(10 * sampleIdle)
		if after := asked.Load(); after != before {
			t.Errorf("with nobody watching it was asked %d times more", after-before)
		}
		// Whoever comes then sees the present, and no sample from before the window.
		overview, samples, err = s.watch(t.Context())
		if err != nil || len(samples) != 1 || overview.Backlog.N != before+1 {
			t.Errorf("after a pause: %d samples, %+v, %v", len(samples), overview, err)
		}
		pass(10 * sampleIdle)
		s.wg.Wait()
	})
}

// TestSamplesOfWhatFails: an error is told, and forgotten when it is over.
func TestSamplesOfWhatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		var broken atomic.Bool
		broken.Store(true)
		s := newSampler(life, func(context.Context) (*ops.Overview, error) {
			if broken.Load() {
				return nil, errors.New("no database")
			}
			return &ops.Overview{At: time.Now()}, nil
		})
		if _, _, err := s.watch(t.Context()); err == nil {
			t.Error("nobody is told")
		}
		broken.Store(false)
		<-time.After(2 * sampleEvery)
		if _, _, err := s.watch(t.Context()); err != nil {
			t.Errorf("the error stays: %v", err)
		}
		end()
		s.wg.Wait()
		if _, _, err := s.watch(t.Context()); err == nil {
			t.Error("a console that is closed goes on")
		}
	})
}
