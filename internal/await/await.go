// Package await waits, in tests, for what no channel tells of: the state of a server or of
// another process. It looks again and again, and gives up at last.
package await

import (
	"context"
	"testing"
	"time"
)

const (
	// patience limits every wait for something that must happen. It is not a measure of speed.
	patience = time.Minute
	// look is the time between two looks.
	look = 5 * time.Millisecond
)

// Until returns when something holds, and fails the test if that takes forever.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !Poll(ctx, holds) {
		t.Fatalf("waited in vain for %s", what)
	}
}

// Poll looks until something holds, and reports false if ctx ends first. It is for
// goroutines that must not end the test.
func Poll(ctx context.Context, holds func() bool) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
