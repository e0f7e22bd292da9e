package emit_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

func TestSerializeNeedsOrderPerKey(t *testing.T) {
	t.Parallel()
	serialize := outbox.EmitConfig{Serialize: true}
	for _, shipped := range shipped.All() {
		_, err := emit.New(shipped.Layout, serialize)
		if err == nil || !strings.Contains(err.Error(), "layout "+shipped.Layout.Name+" keeps no order per key") {
			t.Errorf("%s: got %v", shipped.Layout.Name, err)
		}
	}
	if _, err := emit.New(pgstream.Stream{}, serialize); err != nil {
		t.Error(err)
	}
}

func TestMaxPayloadRange(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, 256<<20 + 1} {
		if _, err := emit.New(pgstream.Stream{}, outbox.EmitConfig{MaxPayload: limit}); err == nil {
			t.Errorf("a limit of %d was taken", limit)
		}
	}
}
