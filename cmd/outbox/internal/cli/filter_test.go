package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestFilterFlags has events that differ in one thing each: a flag finds those that it names and no other. One that
// were read and not passed on would make a retry of some events one of all.
func TestFilterFlags(t *testing.T) {
	t.Parallel()
	const tenant, other = "01890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000b"
	s := newStandard(t)
	// As they are emitted one after the other: what is later in the stream is later in time.
	const idOf = "01890000-0000-7000-8000-00000000000"
	var lines strings.Builder
	for i, fields := range []string{
		`"topic":"orders","type":"placed","namespace":"shop"`,
		`"topic":"orders","type":"placed","key":"k2"`,
		`"topic":"orders","type":"paid"`,
		`"topic":"refunds","type":"placed"`,
		`"topic":"orders","type":"placed","tenantId":"` + tenant + `"`,
		`"topic":"orders","type":"placed","aggregateType":"order","aggregateId":"1"`,
		`"topic":"orders","type":"placed","aggregateType":"order","aggregateId":"2"`,
		`"topic":"orders","type":"placed","aggregateType":"invoice","aggregateId":"1"`,
	} {
		fmt.Fprintf(&lines, `{"id":"%s%d","payload":{},%s}`+"\n", idOf, i+1, fields)
	}
	s.run(lines.String(), "emit")
	pgtest.Exec(t, s.pool, `UPDATE outbox_stream SET created_at = '2026-01-31T12:00:00Z'::timestamptz + right(id::text, 1)::int * interval '1 minute'`)
	for flags, want := range map[string]string{
		"":                             "1 2 3 4 5 6 7 8",
		"--namespace shop":             "1",
		"--key k2":                     "2",
		"--type paid":                  "3",
		"--topic refunds":              "4",
		"--tenant " + tenant:           "5",
		"--tenant " + other:            "",
		"--aggregate order/1":          "6",
		"--aggregate order":            "6 7",
		"--since 2026-01-31T12:07:00Z": "7 8",
		"--until 2026-01-31T12:02:00Z": "1",
		"--since 2026-01-31T12:03:00Z --until 2026-01-31T12:05:00Z": "3 4",
		"--topic orders --type paid":                                "3",
		"--topic refunds --type paid":                               "",
		idOf + "3":                                                  "3",
		idOf + "3 " + idOf + "4 --topic orders":                     "3",
	} {
		var found []string
		for line := range strings.Lines(s.run("", "list "+flags)) {
			if number, is := strings.CutPrefix(strings.Fields(line)[0], idOf); is {
				found = append(found, number)
			}
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want {
			t.Errorf("list %s finds the events %q, want %q", flags, got, want)
		}
	}
}

// TestErrorFlag has events that died of different things: --error takes those of one.
func TestErrorFlag(t *testing.T) {
	t.Parallel()
	s := newOrders(t)
	s.deadOrders(3)
	pgtest.Exec(t, s.pool, `UPDATE modkit_outbox_events SET last_error = 'host 7 refused'`)
	s.deadOrders(2)
	pgtest.Exec(t, s.pool, `UPDATE modkit_outbox_events SET last_error = 'schema 9 is unknown' WHERE last_error IS NULL`)
	if got := s.run("", "retry --layout modkit", "--error", "host # refused"); got != "retrying 3 events\n" {
		t.Errorf("retry prints %q", got)
	}
	if n := s.count("modkit_outbox_events WHERE status = 'dead' AND last_error LIKE 'schema%'"); n != 2 {
		t.Errorf("%d of the events that died of something else are still dead, want 2", n)
	}
}

// TestFilterByUnknownEnumValue looks for a type that the table's enum lacks: the refusal lists those that it has.
func TestFilterByUnknownEnumValue(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "migrate up --layout packfinderz")
	const layout = " --layout packfinderz"
	for _, command := range []string{"list", "retry", "replay --dry-run"} {
		s.refuses(`there is no event_type "nope"; choose one of order_created, `, command+layout+" --type nope")
	}
	s.refuses(`there is no aggregate_type "nope"; choose one of vendor_order, `, "retry"+layout+" --aggregate nope/1")
	s.run("", "retry"+layout+" --type order_created")
}
