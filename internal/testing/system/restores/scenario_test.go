//go:build unix

package restores

// One case of the matrix: a dump is loaded, refused, repaired, and goes on.

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func (c scenario) run(t *testing.T, from *source, old func() *pgserver.Server) (line string) {
	t.Helper()
	s := newStage(t, from.program, c.database(t, from, old))
	if n := s.xmax(); (c.where == younger) != (n < from.lowest) || (c.where != younger) != (n > from.end-1) {
		t.Fatalf("%v: the next transaction is %d, those of the dump are %d to %d", c.where, n, from.lowest, from.end)
	}
	c.dump.load(t, s, from.dump(t, c.dump))
	if n := s.xmax(); c.where == younger && n >= from.lowest {
		t.Fatalf("after the load the next transaction is %d; the events begin at %d", n, from.lowest)
	}
	w := from.writers.clone()
	s.refusesAll()
	if c.when != before {
		w.write(t, s.pool, few)
		s.refusesAll()
	}
	if c.when == passed {
		s.burn(max(from.end-s.xmax(), 0) + 2000)
		w.write(t, s.pool, few)
		s.refusesAll()
	}
	// A producer is in the middle of a transaction while the repair runs.
	unfinished := w.begin(t, s.pool, "unfinished")
	reported := s.repair()
	s.resumes(w, unfinished)
	return s.judge(from, w, reported)
}

// database makes an empty database.
func (c scenario) database(t *testing.T, from *source, old func() *pgserver.Server) string {
	t.Helper()
	var server *pgserver.Server
	switch c.where {
	case younger:
		server = pgtest.Server(t, nil)
	case older:
		server = old()
	default:
		server = from.server
	}
	name := "restored_" + strings.ReplaceAll(c.String(), "-", "_")
	pgtest.Exec(t, pgtest.Connect(t, server.URL("postgres")), `CREATE DATABASE `+name+` TEMPLATE template0`)
	return server.URL(name)
}

// refusesAll has every command refuse that would say or do something wrong.
func (s *stage) refusesAll() {
	s.Helper()
	for _, subscription := range subscriptions() {
		s.refuses(exitUsage, "relay", "--subscription", subscription, "--to", "file:"+s.inbox(subscription))
	}
	s.refuses(exitUsage, "stats")
	s.refuses(exitUsage, "list")
	s.refuses(exitUsage, "list", "--state", "dead")
	s.refuses(exitUsage, "subscriptions", "create", "another")
	s.refuses(exitProblems, "doctor")
	if list := s.arrivals(everything); len(list) > 0 {
		s.Errorf("%d events arrived before the repair", len(list))
	}
}

// repair repairs the stream, after a look at what that would do.
func (s *stage) repair() *repaired {
	s.Helper()
	was := s.fingerprint()
	foreseen := s.repairOnce("--dry-run")
	if now := s.fingerprint(); now != was {
		s.Errorf("repair --dry-run changed something:\n%s\nwas\n%s", now, was)
	}
	s.refuses(exitUsage, "stats")
	done := s.repairOnce()
	if !reflect.DeepEqual(foreseen, done) {
		s.Errorf("repair --dry-run said %+v, and repair did %+v", foreseen, done)
	}
	was = s.fingerprint()
	if again := s.repairOnce(); again.Events != 0 || s.fingerprint() != was {
		s.Errorf("a second repair did %+v", again)
	}
	return done
}

func (s *stage) repairOnce(args ...string) *repaired {
	s.Helper()
	output := s.run(append([]string{"repair", "--json"}, args...)...)
	done := new(repaired)
	if err := json.Unmarshal(output, done); err != nil {
		s.Fatalf("%s: %v", output, err)
	}
	return done
}

// fingerprint is everything that is stored, down to who wrote each row.
func (s *stage) fingerprint() string {
	s.Helper()
	return ask[string](s, `
		SELECT string_agg(relname || ': ' || CASE relkind
			WHEN 'S' THEN pg_sequence_last_value(c.oid)::text
			ELSE (xpath('//h/text()', query_to_xml(format(
				'SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text || xmin || ctid, ''|'' ORDER BY ctid)), '''') AS h FROM %s AS t', c.oid::regclass),
				false, true, '')))[1]::text
			END, E'\n' ORDER BY relname)
		FROM pg_class AS c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')`)
}
