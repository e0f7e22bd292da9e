package consuming

import (
	"sync"
	"time"
)

// Queues run work concurrently, but work of one key in sequence, in the order in which it was added. Work that asks
// to be run again holds up only its own key: meanwhile another key's work runs in its place. They are for consumers
// that retry by themselves.
//
// Queues are unbounded; the caller limits how much work they get.
type Queues struct {
	mu      sync.Mutex
	keys    map[string]*queue
	ready   []*queue               // have work to run now
	pausing map[*queue]*time.Timer // wait to run theirs again
	free    int                    // how many more may run at once
	stopped bool
	running sync.WaitGroup
}

// queue is the work of one key. The first item is running, ready to run, or waiting to run again.
type queue struct {
	key  string
	work []Work
}

// Work does something, and may ask to be run again after a time.
type Work func() (again bool, after time.Duration)

// NewQueues returns queues of which n run at once.
func NewQueues(n int) *Queues {
	return &Queues{keys: make(map[string]*queue), pausing: make(map[*queue]*time.Timer), free: max(n, 1)}
}

// Add appends work to its key's queue; work without a key waits for no other. After Stop it is dropped.
func (q *Queues) Add(key string, work Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return
	}
	line := q.keys[key]
	if line != nil && key != "" {
		line.work = append(line.work, work)
		return
	}
	line = &queue{key: key, work: []Work{work}}
	if key != "" {
		q.keys[key] = line
	}
	q.ready = append(q.ready, line)
	q.start()
}

// start runs what is ready, up to the limit.
func (q *Queues) start() {
	for q.free > 0 && len(q.ready) > 0 && !q.stopped {
		line := q.ready[0]
		q.ready = q.ready[1:]
		q.free--
		work := line.work[0]
		q.running.Go(func() {
			again, after := work()
			q.ended(line, again, after)
		})
	}
}

// ended puts back a queue whose first work has run.
func (q *Queues) ended(line *queue, again bool, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	defer q.start()
	switch {
	case q.stopped:
		return
	case again:
		q.pausing[line] = time.AfterFunc(after, func() { q.resume(line) })
		return
	}
	line.work[0] = nil // it holds a message
	if line.work = line.work[1:]; len(line.work) > 0 {
		q.ready = append(q.ready, line)
	} else if line.key != "" {
		delete(q.keys, line.key)
	}
}

func (q *Queues) resume(line *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pausing, line)
	if !q.stopped {
		q.ready = append(q.ready, line)
		q.start()
	}
}

// Stop waits for running work. It drops work that has not begun or waits to run again.
func (q *Queues) Stop() {
	q.mu.Lock()
	q.stopped = true
	for _, timer := range q.pausing {
		timer.Stop()
	}
	q.mu.Unlock()
	q.running.Wait()
}
