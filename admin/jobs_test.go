package admin

import (
	"context"
	"testing"

	"github.com/packfinderz/outbox/ops"
)

// TestJobs: a change goes on without its request, says how far it is, can be stopped, and ends
// with the console.
func TestJobs(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(t.Context())
	js := &jobs{life: life}
	begun := make(chan struct{})
	until := func(ctx context.Context, progress func(int64)) (*ops.Result, error) {
		progress(3)
		begun <- struct{}{}
		<-ctx.Done()
		return &ops.Result{Events: 4, Interrupted: true}, nil
	}
	var running []*job
	for range maxRunning {
		j, err := js.start(ops.OperationRetry, "ann", until)
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		running = append(running, j)
	}
	if _, err := js.start(ops.OperationRetry, "ann", until); err == nil {
		t.Error("there is no bound to what runs")
	}
	if s := running[0].state(); !s.Running || s.Events != 3 {
		t.Errorf("while it runs it is %+v", s)
	}
	running[0].stop()
	<-running[0].finished
	if s := running[0].state(); s.Running || s.Error != "" || !s.Result.Interrupted || s.Events != 4 {
		t.Errorf("after the stop it is %+v", s)
	}
	if n := len(js.current()); n != maxRunning-1 {
		t.Errorf("%d are running", n)
	}
	for range 2 * maxJobs {
		j, err := js.start(ops.OperationHold, "ann", func(context.Context, func(int64)) (*ops.Result, error) { return &ops.Result{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		<-j.finished
	}
	if len(js.all) > maxJobs || js.find(running[1].id) == nil {
		t.Errorf("%d are remembered, or one that runs is forgotten", len(js.all))
	}
	end()
	js.wg.Wait()
	if _, err := js.start(ops.OperationHold, "ann", until); err == nil {
		t.Error("a closed console begins something")
	}
}
