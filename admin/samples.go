package admin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/packfinderz/outbox/ops"
)

const (
	// sampleEvery is how often an outbox is sampled; sampleWindow is how far charts go back.
	sampleEvery  = 2 * time.Second
	sampleWindow = 10 * time.Minute
	// sampleIdle is how long sampling goes on after the last visit.
	sampleIdle = time.Minute
	// sampleTime bounds one sample.
	sampleTime = 10 * time.Second
)

// sample is a point of the charts. An unknown value is negative.
type sample struct {
	At        time.Time `json:"at"`
	Backlog   int64     `json:"backlog"`
	Dead      int64     `json:"dead"`
	Oldest    float64   `json:"oldestSeconds"`
	Delivered int64     `json:"deliveredPerMinute"`
	Failed    int64     `json:"failedPerMinute"`
}

// sampler samples an outbox while somebody watches. However many watch, it queries the database once; if nobody
// does, not at all.
type sampler struct {
	life context.Context
	look func(context.Context) (*ops.Overview, error)
	wg   sync.WaitGroup

	mu       sync.Mutex
	watched  time.Time
	running  bool
	samples  []sample
	overview *ops.Overview
	err      error
	next     chan struct{} // closed when there is something new
}

func newSampler(life context.Context, look func(context.Context) (*ops.Overview, error)) *sampler {
	return &sampler{life: life, look: look, next: make(chan struct{})}
}

// watch returns the newest overview and the samples of the window. The first caller waits for it.
func (s *sampler) watch(ctx context.Context) (*ops.Overview, []sample, error) {
	s.mu.Lock()
	s.watched = time.Now()
	if s.running {
		if s.overview != nil || s.err != nil {
			defer s.mu.Unlock()
			return s.overview, slices.Clone(s.samples), s.err
		}
	} else if s.life.Err() == nil {
		s.running, s.overview, s.err = true, nil, nil
		s.wg.Go(s.run)
	}
	next := s.next
	s.mu.Unlock()
	select {
	case <-next:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-s.life.Done():
		return nil, nil, s.life.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overview, slices.Clone(s.samples), s.err
}

// run takes samples until nobody has watched for a while.
func (s *sampler) run() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(s.life, sampleTime)
		overview, err := s.look(ctx)
		cancel()
		if !s.take(overview, err) {
			return
		}
		select {
		case <-tick.C:
		case <-s.life.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running = false
			return
		}
	}
}

// take keeps a sample and reports whether to go on.
func (s *sampler) take(overview *ops.Overview, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overview, s.err = overview, err
	if err == nil {
		s.samples = append(s.samples, newSample(overview))
		old := overview.At.Add(-sampleWindow)
		s.samples = slices.DeleteFunc(s.samples, func(one sample) bool { return one.At.Before(old) })
	}
	close(s.next)
	s.next = make(chan struct{})
	s.running = time.Since(s.watched) < sampleIdle
	return s.running
}

func newSample(o *ops.Overview) sample {
	known := func(count *ops.Count) int64 {
		if count == nil {
			return -1
		}
		return count.N
	}
	return sample{
		At: o.At, Backlog: o.Backlog.N, Dead: o.ByState[ops.StateDead].N, Oldest: o.OldestSeconds,
		Delivered: known(o.Delivered), Failed: known(o.Failed),
	}
}
