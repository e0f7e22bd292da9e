package ops_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstore"
)

// A dead-letter table that cannot say that a letter was retried is looked at, and its events are brought back, like any other.
func TestLettersWithoutAMark(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "packfinderz")
	h.exec(`ALTER TABLE outbox_dlq DROP COLUMN retried_at CASCADE`)
	layout := packfinderz.Layout()
	layout.DeadLetter.Columns.RetriedAt = layouts.Column{}
	var err error
	h.store, err = pgstore.New(h.pool, layout, pgstore.Config{})
	h.must(err)
	h.outbox, err = ops.Table(h.single, layout)
	h.must(err)

	id := h.emit(1, nil)[0]
	h.kill("no", id)
	if dead := h.list(ops.Filter{State: ops.StateDead}); len(dead) != 1 || dead[0].ID != id || dead[0].Reason != string(outbox.ReasonTerminal) {
		t.Fatalf("the dead events are %+v", dead)
	}
	_, err = h.outbox.Retry(t.Context(), ops.Filter{State: ops.StateDead}, ops.Change{Actor: "alice"})
	h.must(err)
	if dead := h.list(ops.Filter{State: ops.StateDead}); len(dead) != 0 {
		t.Errorf("after the retry %+v are dead", dead)
	}
	details := h.show(id)
	if last := details.Timeline[len(details.Timeline)-1]; last.What != "retried" {
		t.Errorf("the last thing that happened is %+v, want the retry", last)
	}
}
