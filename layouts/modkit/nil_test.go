package modkit_test

import (
	"context"
	"testing"

	"github.com/packfinderz/outbox/layouts/modkit"
)

// TestNilArguments checks that nil arguments are errors that say so, not panics.
func TestNilArguments(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, modkit.ClaimedMessage) error { return nil }
	if _, err := modkit.NewDispatcher(nil, modkit.DispatcherConfig{Otherwise: handle}); err == nil {
		t.Error("a dispatcher without a module")
	}
	var module modkit.Module
	if err := module.Nack(t.Context(), modkit.ClaimedMessage{}, nil); err == nil {
		t.Error("a failure without an error was taken")
	}
	if _, err := modkit.Enqueue(t.Context(), nil, modkit.Message{}); err == nil {
		t.Error("nil was used as a transaction")
	}
}
