package ops_test

import (
	"testing"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

func TestBadPlaces(t *testing.T) {
	t.Parallel()
	if _, err := ops.Table(nil, layouts.Layout{}); err == nil {
		t.Error("a layout without a table was taken")
	}
	if _, err := ops.Stream(nil, pgstream.Stream{Schema: "a\x00b"}, ""); err == nil {
		t.Error("a schema that cannot exist was taken")
	}
}
