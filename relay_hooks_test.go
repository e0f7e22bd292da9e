package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
)

// diary is a hook that records all it is told.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) OnClaim(r outbox.ClaimReport) {
	d.note("claim of %d, %d reclaimed", r.Events, r.Reclaimed)
}
func (d *diary) OnSweep(dead int64)     { d.note("%d swept", dead) }
func (d *diary) OnStoreError(err error) { d.note("store: %v", err) }
func (d *diary) OnRoute(status outbox.RouteStatus) {
	d.note("%s open %t: %s", status.Name(), status.Open, status.Error)
}

func (d *diary) OnSettle(r outbox.BatchReport) {
	d.note("settle of %d: %s, %d lost, published in %s", len(r.Messages), kinds(r.Outcomes), len(r.Lost), r.Publish)
}

// TestHooks checks all that a hook is told, with the numbers, from a failing database to a sweep.
func TestHooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		messages := many(3)
		store, claims := newMemStore(messages...), 0
		store.swept, store.reclaimed, store.exhausted, store.lost = 2, 1, many(4), []uuid.UUID{messages[2].ID}
		store.onClaim = func(context.Context) error {
			if claims++; claims == 1 {
				return errors.New("no database")
			}
			return nil
		}
		away := errors.New("away")
		publisher := pinged{&scripted{}, moments(), func() error { return nil }}
		publisher.answer = func(m outbox.Message) error {
			switch {
			case len(publisher.calls) == 0:
				return outbox.Unavailable(away)
			case m.ID == messages[1].ID:
				return outbox.Rejected(errors.New("never"))
			}
			<-time.After(time.Second)
			return nil
		}
		hook := &diary{}
		relay := startOrdered(t, outbox.RelayConfig{
			Store: store, Publisher: publisher, Poll: calm, SweepEvery: 10 * time.Second, Hooks: []any{hook},
		})
		<-time.After(15 * time.Second)
		outboxtest.Stop(t, relay)
		want := []string{
			"store: no database",
			"4 swept", // found by the claim
			"claim of 3, 1 reclaimed",
			"destination open false: away",
			"settle of 3: released released released, 1 lost, published in 0s",
			"claim of 3, 1 reclaimed",
			"destination open true: ", // by those at which the connection did not break
			"settle of 3: released dead delivered, 1 lost, published in 1s",
			"claim of 1, 1 reclaimed",
			"settle of 1: delivered, 1 lost, published in 1s",
			"2 swept",
		}
		// Events that a settle made due may be claimed before the hook is told of the settle.
		settles := func(line string) bool { return strings.HasPrefix(line, "settle") }
		others := func(line string) bool { return !settles(line) }
		if !slices.Equal(only(hook.lines, settles), only(want, settles)) || !slices.Equal(only(hook.lines, others), only(want, others)) {
			t.Errorf("the hook was told\n%s\nwant\n%s", strings.Join(hook.lines, "\n"), strings.Join(want, "\n"))
		}
	})
}

// only returns the wanted lines, in order.
func only(lines []string, wanted func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !wanted(line) })
}
