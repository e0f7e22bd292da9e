package testserver

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// Example is what a runnable example has in place of a test. Done is to be deferred: it runs what
// was put off with Cleanup.
type Example struct {
	testing.TB // stays nil: an example needs only what is here
	cleanups   []func()
	failed     bool
}

// Helper does nothing.
func (*Example) Helper() {}

// Cleanup puts a function off until Done.
func (e *Example) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }

// Context never ends.
func (*Example) Context() context.Context { return context.Background() }

// TempDir makes a folder that Done removes.
func (e *Example) TempDir() string {
	folder, err := os.MkdirTemp("", "outbox-example-")
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			e.Error(err)
		}
	})
	return folder
}

// Error prints: the example's output is then not what it says.
func (e *Example) Error(args ...any) {
	e.failed = true
	fmt.Println(args...)
}

// Errorf is Error with a format.
func (e *Example) Errorf(format string, args ...any) { e.Error(fmt.Sprintf(format, args...)) }

// Failed reports whether there was an Error.
func (e *Example) Failed() bool { return e.failed }

// Log says nothing: what an example prints is its output.
func (*Example) Log(...any) {}

// Logf says nothing.
func (*Example) Logf(string, ...any) {}

// Fatal prints and ends the process.
func (e *Example) Fatal(args ...any) {
	e.Done()
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

// Fatalf prints and ends the process.
func (e *Example) Fatalf(format string, args ...any) { e.Fatal(fmt.Sprintf(format, args...)) }

// Done runs what was put off, the last first.
func (e *Example) Done() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
	e.cleanups = nil
}
