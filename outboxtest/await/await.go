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
	if !Check(t, what, holds) {
		t.FailNow()
	}
}

// Check is Until for goroutines that must not end the test: it reports the failure as an error
// and returns false.
func Check(t testing.TB, what string, holds func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := Poll(ctx, holds); err != nil {
		t.Errorf("waited in vain for %s", what)
		return false
	}
	return true
}

// Poll looks until something holds, and returns ctx's error if that ends first. It is for waits
// that end in a way of their own, or say more when they fail. It returns an error, not a bool,
// so that the linters see a result that is dropped: such a wait cannot fail.
func Poll(ctx context.Context, holds func() bool) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
