package natsjs_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	stream(t, broker, jetstream.StreamConfig{Name: "FAST", Subjects: []string{"fast", "faster"}, Storage: jetstream.MemoryStorage})
	want := func(url string, words ...string) {
		t.Helper()
		got := open(t, url).Warnings(t.Context(), publishertest.Topic, "fast", "faster", "nobody.has.this", "")
		if len(got) != len(words) {
			t.Fatalf("the warnings are %q, want %q", got, words)
		}
		for i, word := range words {
			if !strings.Contains(got[i], word) {
				t.Errorf("%q does not say %q", got[i], word)
			}
		}
	}
	want(broker.URL(), "sync_interval: always", "stream FAST keeps its messages in memory")
	want(broker.URL()+"?sync-always=true", "stream FAST keeps its messages in memory")
	broker.Stop(t)
	want(broker.URL(), "sync_interval: always")
	want(broker.URL() + "?sync-always=true")
}
