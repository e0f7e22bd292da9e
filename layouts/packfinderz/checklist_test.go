package packfinderz_test

import (
	"slices"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/checklist"
)

// The folders of the tests.
const (
	publisher   = "packfinderz/cmd/outbox-publisher."
	worker      = "packfinderz/cmd/worker."
	compliance  = "packfinderz/internal/compliance."
	model       = "packfinderz/pkg/db/model."
	emitter     = "packfinderz/pkg/outbox."
	registry    = "packfinderz/pkg/outbox/registry."
	payloads    = "packfinderz/pkg/outbox/payloads."
	idempotency = "packfinderz/pkg/outbox/idempotency."
	wholeRoad   = "packfinderz/internal/e2e.TestEveryChangeIsNotifiedOnce"
)

// ticket is one document of the contract: the lines of its acceptance section, and those of all others (scope,
// schema, technical notes). Lines that it puts out of scope are left out.
type ticket struct{ acceptance, others []checklist.Line }

// line is one requirement of a document, with the tests that fail without it.
func line(asks string, tests ...string) checklist.Line {
	return checklist.Line{Asks: asks, Tests: tests}
}

// Every line of every ticket, and of the page on the publisher, has its tests; no acceptance line is left out.
func TestChecklist(t *testing.T) {
	t.Parallel()
	contract := []struct {
		name               string
		acceptance, others int
		ticket             ticket
	}{
		{"PF-060", 5, 12, pf060()},
		{"PF-066", 7, 13, pf066()},
		{"PF-067", 15, 18, pf067()},
		{"PF-141", 5, 7, pf141()},
		{"PF-142", 8, 13, pf142()},
		{"PF-143", 5, 8, pf143()},
		{"PF-144", 4, 6, pf144()},
		{"PF-145", 5, 7, pf145()},
		{"document", 0, 30, document()},
	}
	var lines []checklist.Line
	for _, c := range contract {
		if len(c.ticket.acceptance) != c.acceptance || len(c.ticket.others) != c.others {
			t.Errorf("%s has %d acceptance lines and %d others, want %d and %d",
				c.name, len(c.ticket.acceptance), len(c.ticket.others), c.acceptance, c.others)
		}
		for _, line := range slices.Concat(c.ticket.acceptance, c.ticket.others) {
			line.Asks = c.name + ": " + line.Asks
			lines = append(lines, line)
		}
	}
	checklist.Verify(t, lines)
}
