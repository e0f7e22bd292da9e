package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestTour takes the tour, twice on the same database.
func TestTour(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for range 2 {
		var out bytes.Buffer
		if err := run(t.Context(), url, "", &out); err != nil {
			t.Fatal(err)
		}
		for _, words := range []string{
			"a turn is completed: 10 tokens used and event ",
			"still completed, already enqueued: true, the same event: true",
			"a turn is failed: 4 tokens", "a turn is aborted: 6 tokens", "is refused, and has no event",
			"billing has counted 3 turns and 20 tokens; the quota says 20 used",
			"its attempts are used up: 1 dead",
			"retried by hand: billing has counted 1 turn and 4 tokens",
		} {
			if !strings.Contains(out.String(), words) {
				t.Errorf("the tour lacks %q:\n%s", words, &out)
			}
		}
	}
	pool := pgtest.Connect(t, url)
	var events, turns int
	err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM modkit_outbox_events), (SELECT count(*) FROM chat_turns)`).Scan(&events, &turns)
	if err != nil || events != 8 || turns != 8 {
		t.Errorf("%d events of %d turns, want 8 of 8: %v", events, turns, err)
	}
}
