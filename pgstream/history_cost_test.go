package pgstream

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestCheckIsNotCompiled explains the check as any session runs it, on a stream that was never analysed: from a cost of
// 100,000 on the server compiles a statement, which takes seconds, on every new connection.
func TestCheckIsNotCompiled(t *testing.T) {
	t.Parallel()
	s := newStage(t, pgtest.URL(t), Shape{Shards: 256})
	var line string
	if err := s.pool.QueryRow(t.Context(), "EXPLAIN "+Stream{}.names(checkSQL)).Scan(&line); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\.\.([0-9]+)`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("no cost in %q", line)
	}
	if cost, err := strconv.Atoi(found[1]); err != nil || cost > 20_000 {
		t.Errorf("the check costs %d (%v): %s", cost, err, line)
	}
}
