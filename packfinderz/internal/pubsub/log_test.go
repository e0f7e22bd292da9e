package pubsub_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/grpclog"

	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
)

// Errors of the client are lines of our log. The test has the client's log to itself: no other of this package makes a client.
func TestLogTo(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	pubsub.LogTo(slog.New(slog.NewJSONHandler(&log, nil)))
	grpclog.Error("a ", "b")
	grpclog.Errorln("a", "b")
	grpclog.Errorf("a %s", "b")
	grpclog.Component("core").Error("a b")
	grpclog.Warning("a b")
	lines := 0
	for line := range strings.Lines(log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["level"] != "WARN" || !strings.HasSuffix(fields["message"].(string), "a b") {
			t.Errorf("%s: %v", line, err)
		}
		lines++
	}
	if lines != 4 {
		t.Errorf("%d lines, want 4:\n%s", lines, log.String())
	}
}
