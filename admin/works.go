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
	// maxWorks is how many changes of a target are remembered, maxRunning how many run at once.
	maxWorks   = 50 // more than may run, so that there is always one to forget
	maxRunning = 4
	// patience is how long a request waits for a change that it asked for; what takes longer
	// goes on by itself, and pages show how far it is.
	patience = 2 * time.Second
)

// work is a change that somebody asked for. It does not end with the request: closing a browser
// is no way to stop a retry of a hundred thousand events.
type work struct {
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

// workState is a work as pages and programs see it.
type workState struct {
	ID        string        `json:"id"`
	Operation ops.Operation `json:"operation"`
	Actor     string        `json:"actor"`
	// Running is set until it has ended, however that was.
	Running bool `json:"running"`
	// Events is how many events are done.
	Events int64 `json:"events"`
	// Result is what was done in the end; nil while it runs, or if it failed.
	Result *ops.Result `json:"result,omitempty"`
	// Error says why it failed.
	Error string `json:"error,omitempty"`
}

// works are the changes of a target, oldest first.
type works struct {
	life context.Context
	mu   sync.Mutex
	all  []*work
	wg   sync.WaitGroup
}

func newWorks(life context.Context) *works { return &works{life: life} }

// start begins a change.
func (ws *works) start(operation ops.Operation, actor string, do func(context.Context, func(int64)) (*ops.Result, error)) (*work, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	running := 0
	for _, w := range ws.all {
		if w.running() {
			running++
		}
	}
	if running >= maxRunning || ws.life.Err() != nil {
		return nil, &failure{http.StatusServiceUnavailable, "Other changes are under way. Wait until one of them has ended."}
	}
	ctx, stop := context.WithCancel(ws.life)
	w := &work{id: rand.Text(), operation: operation, actor: actor, stop: stop, finished: make(chan struct{})}
	if len(ws.all) >= maxWorks {
		oldest := slices.IndexFunc(ws.all, func(w *work) bool { return !w.running() })
		ws.all = slices.Delete(ws.all, oldest, oldest+1)
	}
	ws.all = append(ws.all, w)
	ws.wg.Go(func() {
		defer stop()
		defer close(w.finished)
		result, err := do(ctx, w.progress)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.result, w.err = result, err
	})
	return w, nil
}

// find is a change by its number; nil if it is forgotten.
func (ws *works) find(id string) *work {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		if w.id == id {
			return w
		}
	}
	return nil
}

// current are the changes that run.
func (ws *works) current() []*work {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var running []*work
	for _, w := range ws.all {
		if w.running() {
			running = append(running, w)
		}
	}
	return running
}

func (ws *works) wait() { ws.wg.Wait() }

func (w *work) running() bool {
	select {
	case <-w.finished:
		return false
	default:
		return true
	}
}

func (w *work) progress(done int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = done
}

// await waits for the end, for as long as somebody would wait for a page.
func (w *work) await(ctx context.Context) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.finished:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// outcome is how it ended, or what is done so far.
func (w *work) outcome() (running bool, done int64, result *ops.Result, err error) {
	running = w.running()
	w.mu.Lock()
	defer w.mu.Unlock()
	return running, w.done, w.result, w.err
}

// state is what is shown of a work. What went wrong is in the log since it did.
func (w *work) state() workState {
	running, done, result, err := w.outcome()
	s := workState{ID: w.id, Operation: w.operation, Actor: w.actor, Running: running, Events: done, Result: result}
	if result != nil {
		s.Events = result.Events
	}
	if err != nil {
		_, s.Error, _ = explain(err)
	}
	return s
}
