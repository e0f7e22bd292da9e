package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// build builds the program into a folder of the test.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "minichat")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// TestTour takes the tour, twice on the same databases and broker.
func TestTour(t *testing.T) {
	t.Parallel()
	program, chatURL, billingURL, nats := build(t), pgtest.URL(t), pgtest.URL(t), natstest.Bare(t, natstest.Settings{})
	for range 2 {
		tour := exec.CommandContext(t.Context(), program, "--database", chatURL, "--billing-database", billingURL, "--nats", nats.URL())
		out, err := tour.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, words := range []string{
			"a turn is completed: 10 tokens used and message ",
			"still completed, already enqueued: true, the same message: true",
			"a turn is failed: 4 tokens", "a turn is aborted: 6 tokens", "is refused, and has no message",
			"billing has counted 3 turns and 20 tokens; the chat says 20 used\nbilling is away",
			"billing is back\nbilling has counted 4 turns and 24 tokens; the chat says 24 used",
		} {
			if !strings.Contains(string(out), words) {
				t.Errorf("the tour lacks %q:\n%s", words, out)
			}
		}
	}
	chat, billing := pgtest.Connect(t, chatURL), pgtest.Connect(t, billingURL)
	for query, got := range map[string]int64{
		"messages": ask(t, chat, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered'`),
		"turns":    ask(t, chat, `SELECT count(*) FROM chat_turns`),
		"counted":  ask(t, billing, `SELECT count(*) FROM billing_usage`),
	} {
		if got != 8 {
			t.Errorf("%s: %d, want 8", query, got)
		}
	}
	// Neither knows the tables of the other.
	if n := ask(t, chat, `SELECT count(*) FROM pg_class WHERE relname LIKE 'billing%'`) +
		ask(t, billing, `SELECT count(*) FROM pg_class WHERE relname LIKE 'chat%' OR relname LIKE 'modkit%'`); n > 0 {
		t.Errorf("%d tables of the other side", n)
	}
}
