package admin

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/packfinderz/outbox/ops"
)

const (
	// maxJobs is how many changes of an outbox are remembered, maxRunning how many run at once.
	maxJobs    = 50 // more than may run, so that there is always one to forget
	maxRunning = 4
	// patience is how long a request waits for its change. A longer change goes on by itself, and pages show its
	// progress.
	patience = 2 * time.Second
)

// job is a running or finished change. It outlives its request: closing a browser must not stop a retry of a
// hundred thousand events.
type job struct {
	id        string
	operation ops.Operation
	actor     string
	stop      context.CancelFunc
	finished  chan struct{}

	mu     sync.Mutex
	done   int64
	result *ops.Result
	err    error
}

// jobState is a job as pages and programs see it.
type jobState struct {
	ID        string        `json:"id"`
	Operation ops.Operation `json:"operation"`
	Actor     string        `json:"actor"`
	// Running is set until the job ends, well or not.
	Running bool `json:"running"`
	// Events is how many events are done.
	Events int64 `json:"events"`
	// Result is the final result; nil while the job runs, or if it failed.
	Result *ops.Result `json:"result,omitempty"`
	// Error says why it failed.
	Error string `json:"error,omitempty"`
	// failed is the status of the answer for that; zero if it did not fail.
	failed int
}

// jobs are the changes of an outbox, oldest first.
type jobs struct {
	life context.Context
	mu   sync.Mutex
	all  []*job
	wg   sync.WaitGroup
}

func (js *jobs) start(operation ops.Operation, actor string, do func(context.Context, func(int64)) (*ops.Result, error)) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if len(js.running()) >= maxRunning || js.life.Err() != nil {
		return nil, &failure{http.StatusServiceUnavailable, "Other changes are under way. Wait until one of them has ended."}
	}
	ctx, stop := context.WithCancel(js.life)
	j := &job{id: rand.Text(), operation: operation, actor: actor, stop: stop, finished: make(chan struct{})}
	if len(js.all) >= maxJobs {
		oldest := slices.IndexFunc(js.all, func(j *job) bool { return !j.running() })
		js.all = slices.Delete(js.all, oldest, oldest+1)
	}
	js.all = append(js.all, j)
	js.wg.Go(func() {
		defer stop()
		defer close(j.finished)
		result, err := do(ctx, j.progress)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.result, j.err = result, err
	})
	return j, nil
}

// find returns a job by its number; nil if it is forgotten.
func (js *jobs) find(id string) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	if i := slices.IndexFunc(js.all, func(j *job) bool { return j.id == id }); i >= 0 {
		return js.all[i]
	}
	return nil
}

func (js *jobs) current() []*job {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.running()
}

func (js *jobs) running() []*job {
	return slices.DeleteFunc(slices.Clone(js.all), func(j *job) bool { return !j.running() })
}

func (j *job) running() bool {
	select {
	case <-j.finished:
		return false
	default:
		return true
	}
}

func (j *job) progress(done int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = done
}

// await waits for the end, up to patience.
func (j *job) await(ctx context.Context) {
	select {
	case <-j.finished:
	case <-time.After(patience):
	case <-ctx.Done():
	}
}

// state returns a job's state. The log already has the error.
func (j *job) state() jobState {
	s := jobState{ID: j.id, Operation: j.operation, Actor: j.actor, Running: j.running()}
	j.mu.Lock()
	defer j.mu.Unlock()
	s.Events, s.Result = j.done, j.result
	if j.result != nil {
		s.Events = j.result.Events
	}
	if j.err != nil {
		s.failed, s.Error, _ = explain(j.err)
	}
	return s
}
