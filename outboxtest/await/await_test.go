package await

import (
	"context"
	"errors"
	"testing"
)

// TestPoll has a wait that ends well, and one in vain.
func TestPoll(t *testing.T) {
	t.Parallel()
	looks := 0
	if err := Poll(t.Context(), func() bool { looks++; return looks == 3 }); err != nil || looks != 3 {
		t.Errorf("after %d looks: %v", looks, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Poll(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait in vain: %v", err)
	}
}
