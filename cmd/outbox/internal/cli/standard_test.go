package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// standard is a database with a stream.
type standard struct {
	*testing.T
	url  string
	pool *pgxpool.Pool
}

func newStandard(t *testing.T) *standard {
	t.Helper()
	s := &standard{T: t, url: pgtest.URL(t)}
	s.pool = connect(t, s.url)
	s.run("", "migrate up")
	return s
}

// args adds the database to a command line; arguments with spaces come after it.
func (s *standard) args(command string, more []string) []string {
	return slices.Concat(strings.Fields(command), []string{"--from", s.url}, more)
}

func (s *standard) run(stdin, command string, more ...string) string {
	s.Helper()
	return ok(s.T, stdin, s.args(command, more)...)
}

func (s *standard) refuses(words, command string, more ...string) {
	s.Helper()
	refused(s.T, words, "", s.args(command, more)...)
}

func (s *standard) count(what string) (n int) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), `SELECT count(*) FROM `+what).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// quiet has drain print events and nothing else.
const quiet = " --to stdout: --log-level error"

// hears fails unless work notifies relays.
func (s *standard) hears(work func()) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		s.Fatal(err)
	}
	listener := conn.Hijack()
	defer func() { _ = listener.Close(context.WithoutCancel(ctx)) }()
	var oid uint32
	if err := listener.QueryRow(ctx, `SELECT 'outbox_stream'::regclass::oid`).Scan(&oid); err != nil {
		s.Fatal(err)
	}
	if _, err := listener.Exec(ctx, fmt.Sprintf(`LISTEN outbox_%d`, oid)); err != nil {
		s.Fatal(err)
	}
	work()
	if _, err := listener.WaitForNotification(ctx); err != nil {
		s.Errorf("relays were not woken: %v", err)
	}
}

// emit emits n events of as many keys, in order.
func (s *standard) emit(n int) {
	s.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"type":"placed","topic":"orders","key":"k%d","payload":{"order": %d}}`+"\n", i%7, i)
	}
	s.run(lines.String(), "emit")
}

// delivery is what drain printed of one of these events.
type delivery struct {
	ID      string `json:"id"`
	Topic   string `json:"topic"`
	Key     string `json:"key"`
	Payload struct {
		Order int `json:"order"`
	} `json:"payload"`
}

func delivered(t *testing.T, out string) (list []delivery) {
	t.Helper()
	for line := range strings.Lines(out) {
		var event delivery
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, event)
	}
	return list
}
