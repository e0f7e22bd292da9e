package dest_test

import (
	"io"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func open(t *testing.T, to string, out io.Writer) dest.Destination {
	t.Helper()
	destination, err := dest.Open(to, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := destination.Close(); err != nil {
			t.Error(err)
		}
	})
	return destination
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for to, words := range map[string]string{
		"":                          "no scheme",
		"events.jsonl":              "no scheme",
		"stdout:x":                  "takes nothing more",
		"discard:x":                 "takes nothing more",
		"file:":                     "no path",
		"pigeon://localhost":        "there is no destination pigeon:",
		"file:/nowhere/to/be/found": "no such file",
	} {
		if _, err := dest.Open(to, nil); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want %q", to, err, words)
		}
		if err := dest.Check(to); (err == nil) != (words == "no such file") {
			t.Errorf("a check of %q: %v", to, err)
		}
	}
	discard := open(t, "discard:", nil)
	if errs := discard.Publish(t.Context(), publishertest.Messages(3)); len(errs) != 3 || errs[0] != nil {
		t.Errorf("discard: answers %v", errs)
	}
	if sequencer, ok := discard.(outbox.Sequencer); !ok || !sequencer.KeepsOrder() {
		t.Error("discard: does not keep order")
	}
}

// TestName has what the log calls a destination: nothing of it may be a secret.
func TestName(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"https://user:pass@hooks.example/services/T0/secret?token=x#secret=y": "https://hooks.example",
		"redis://:pass@localhost:6379/2?wait=1":                               "redis://localhost:6379/2",
		"file:events.jsonl":                                                   "file:events.jsonl",
		"%zz://x":                                                             "%zz:",
	} {
		if got := dest.Name(to); got != want {
			t.Errorf("%s is called %s, want %s", to, got, want)
		}
	}
}
