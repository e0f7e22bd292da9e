package cli_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// poolerServers is how many sessions the poolers of these tests have.
const poolerServers = 8

// TestPooler runs every command that touches the database through a pooler in transaction mode, on the
// stream and on a layout for each way to hold a row. It leaves no trace in the pooler's sessions.
func TestPooler(t *testing.T) {
	t.Parallel()
	for layout, event := range pooledLayouts() {
		for _, mode := range []string{"cache_statement", "exec", "simple_protocol", "describe_exec"} {
			t.Run(layout+" "+mode, func(t *testing.T) {
				t.Parallel()
				direct := pgtest.URL(t)
				through := pgbouncer.Start(t, direct, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
				s := &standard{T: t, url: through + "&default_query_exec_mode=" + mode, pool: connect(t, direct)}
				useProgram(s, layout, event, 1)
				pgbouncer.AssertNoTraces(t, direct, through, poolerServers)
			})
		}
	}
}

// TestQueryModes is the same on a direct connection, with the query modes that a URL can have.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for layout, event := range pooledLayouts() {
		for _, mode := range []string{"exec", "simple_protocol", "describe_exec", "cache_describe"} {
			t.Run(layout+" "+mode, func(t *testing.T) {
				t.Parallel()
				direct := pgtest.URL(t)
				useProgram(&standard{T: t, url: direct + "&default_query_exec_mode=" + mode, pool: connect(t, direct)}, layout, event, 0)
			})
		}
	}
}

// pooledLayouts are the stream and a layout for each way to hold a row, with an event of each.
func pooledLayouts() map[string]string {
	const aggregate = `"aggregateId":"018f0000-0000-7000-8000-000000000001","payload":{"order":1}`
	return map[string]string{
		"standard":    `{"type":"placed","topic":"orders","key":"k","payload":{"order":1}}`,
		"packfinderz": `{"type":"order_created","aggregateType":"vendor_order",` + aggregate + `}`,
		"doorito":     `{"type":"placed","aggregateType":"order",` + aggregate + `}`,
		"modkit":      `{"topic":"orders","namespace":"shop","payload":{"order":1}}`,
	}
}

// useProgram runs the commands. The log of a relay has so many lines about a pooler.
func useProgram(s *standard, layout, event string, noticed int) {
	s.Helper()
	at := []string{"--layout", layout}
	s.run("", "migrate up", at...)
	s.run("", "migrate status", at...)
	const events = 20
	s.run(strings.Repeat(event+"\n", events), "emit", at...)
	got := run(s.T, "", s.args("drain --to stdout: --log-level info", at)...)
	if got.code != 0 || strings.Count(got.out, "\n") != events {
		s.Fatalf("drain: exit code %d, %d events, want %d: %s", got.code, strings.Count(got.out, "\n"), events, got.err)
	}
	if said := strings.Count(got.err, "there is a connection pooler"); said != noticed {
		s.Errorf("the log has %d lines about a pooler, want %d: %s", said, noticed, got.err)
	}
	s.run("", "stats", at...)
	list := s.run("", "list --state delivered --json", at...)
	_, rest, _ := strings.Cut(list, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if id == "" {
		s.Fatalf("list prints %s", list)
	}
	s.run("", "show "+id, at...)
	s.run("", "retry --all --dry-run", at...)
	if got := run(s.T, "", s.args("doctor", at)...); got.code == 2 || !strings.Contains(got.out, "notifications") {
		s.Errorf("doctor: exit code %d: %s%s", got.code, got.out, got.err)
	}
	s.run("", "purge --retention 1h", at...)
	if layout == "standard" {
		s.run("", "subscriptions create audit --from-now")
		s.run("", "subscriptions list")
		s.run("", "replay --id "+id)
		s.run("", "drain"+quiet)
		s.run("", "subscriptions drop audit --force")
		s.run("", "repair")
	}
	s.run("", "migrate down --force", at...)
}
