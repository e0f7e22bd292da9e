//go:build unix

package testserver

import (
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestThreads ends every thread that could have started a command, which must not end it: it
// would be killed for what an unrelated goroutine did.
func TestThreads(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	done, err := Launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	var ready, ended sync.WaitGroup
	leave := make(chan struct{})
	for range 100 {
		ready.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			ready.Done()
			<-leave
		})
	}
	ready.Wait()
	close(leave)
	ended.Wait()
	select {
	case <-done:
		t.Errorf("the command ended with the thread of another: %s", cmd.ProcessState)
	case <-time.After(200 * time.Millisecond): // threads end a moment after their goroutines
	}
	_ = cmd.Process.Kill() // fails only when it has ended
	<-done
}
