//go:build unix

package restores

// A database with a stream, and the program at work on it.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// The subscriptions of every stream here: one takes all, the other has a filter.
const (
	everything = pgstream.DefaultSubscription
	filtered   = "orders"
)

func subscriptions() []string { return []string{everything, filtered} }

// takes reports whether an event is one for the subscription.
func takes(subscription, topic string) bool {
	return subscription == everything || topic == ordersTopic
}

// The exit codes of the program.
const (
	exitUsage    = 2
	exitProblems = 4
)

// stage is a database and what the program did with it.
type stage struct {
	*testing.T
	program, url, folder string
	pool                 *pgxpool.Pool
	runs                 int
}

func newStage(t *testing.T, program, url string) *stage {
	t.Helper()
	folder, err := os.MkdirTemp(t.ArtifactDir(), "stage-") //nolint:usetesting // a test may have several, and they are kept with it
	if err != nil {
		t.Fatal(err)
	}
	return &stage{T: t, program: program, url: url, folder: folder, pool: pgtest.Connect(t, url)}
}

func (s *stage) file(name string) string { return filepath.Join(s.folder, name) }

// start starts a command on the database. Its standard output goes to a file, too, or to where it is told.
func (s *stage) start(stdout *os.File, args ...string) *process.Process {
	s.Helper()
	s.runs++
	name := strconv.Itoa(s.runs) + "-" + args[0] + ".log"
	return process.Start(s.T, s.file(name), stdout, s.program, append(args, "--from", s.url)...)
}

// run runs a command that must succeed, and returns what it printed.
func (s *stage) run(args ...string) []byte {
	s.Helper()
	output, err := os.Create(s.file("output"))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = output.Close() }() // the process has its own
	s.start(output, args...).MustSucceed(s.T)
	content, err := os.ReadFile(output.Name())
	if err != nil {
		s.Fatal(err)
	}
	return content
}

// hint is what everybody who refuses says.
const hint = "outbox repair"

// refuses runs a command that must fail and say what to do.
func (s *stage) refuses(code int, args ...string) {
	s.Helper()
	command := s.start(nil, args...)
	if got := command.Wait(s.T); got != code || !command.Logs(hint) {
		s.Errorf("outbox %v: exit code %d, want %d and the words %q\n%s", args, got, code, hint, command.Tail())
	}
}

// inbox is the file that the relays of a subscription deliver to.
func (s *stage) inbox(subscription string) string { return s.file(subscription + ".jsonl") }

// relay starts a relay of a subscription that delivers to its file.
func (s *stage) relay(subscription string, more ...string) *process.Process {
	s.Helper()
	return s.start(nil, append([]string{
		"relay", "--subscription", subscription, "--to", "file:" + s.inbox(subscription), "--poll", "100ms", "--lease", "3s",
	}, more...)...)
}

// terminate ends a relay as an operator does.
func (s *stage) terminate(relay *process.Process) {
	s.Helper()
	relay.Signal(s.T, syscall.SIGTERM)
	relay.MustSucceed(s.T)
}

// await waits until something holds while relays run.
func (s *stage) await(what string, holds func() bool, relays ...*process.Process) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), process.Patience)
	defer cancel()
	err := await.Poll(ctx, func() bool {
		for _, relay := range relays {
			if relay.Ended() {
				s.Fatalf("a relay ended while waiting for %s\n%s", what, relay.Tail())
			}
		}
		return holds()
	})
	if err != nil {
		for _, relay := range relays {
			s.Log(relay.Tail())
		}
		for _, subscription := range subscriptions() {
			s.Logf("%s: %d unread, parked: %v", subscription, s.behind(subscription), s.parked(subscription))
		}
		s.Fatalf("waited in vain for %s", what)
	}
}

func (s *stage) exec(sql string, args ...any) {
	s.Helper()
	pgtest.Exec(s.T, s.pool, sql, args...)
}

// ask asks the database for one value.
func ask[V any](s *stage, sql string, args ...any) (value V) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), sql, args...).Scan(&value); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return value
}

// burn uses up transaction ids.
func (s *stage) burn(n int64) {
	s.Helper()
	s.exec(`DO $$ BEGIN FOR i IN 1..` + strconv.FormatInt(n, 10) + ` LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
}

// xmax is one past the newest transaction id that is complete.
func (s *stage) xmax() int64 {
	s.Helper()
	return ask[int64](s, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)
}

// arrival is an event that was delivered.
type arrival struct {
	ID      uuid.UUID `json:"id"`
	Key     string    `json:"key"`
	Payload struct {
		Version int64 `json:"version"`
	} `json:"payload"`
}

// arrivals are what was delivered to a file so far.
func (s *stage) arrivals(subscription string) []arrival {
	s.Helper()
	content, err := os.ReadFile(s.inbox(subscription))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Fatal(err)
	}
	var list []arrival
	for line := range bytes.Lines(content) {
		var a arrival
		if line[len(line)-1] != '\n' {
			break // it is being written
		}
		if err := json.Unmarshal(line, &a); err != nil {
			s.Fatalf("%s: %s: %v", s.inbox(subscription), line, err)
		}
		list = append(list, a)
	}
	return list
}

// unsettled are the events that a subscription has not settled by the database's own account: those its cursors have not
// passed, and those that are parked.
func (s *stage) unsettled(subscription string) map[uuid.UUID]bool {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), streamsql.Names("", `
		SELECT e.id, e.topic FROM {stream} AS e JOIN {shards} AS c ON c.shard = e.shard
		WHERE c.subscription = $1 AND NOT {behind}
		UNION SELECT id, topic FROM {parked} WHERE subscription = $1`), subscription)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	set := make(map[uuid.UUID]bool)
	for rows.Next() {
		var id uuid.UUID
		var topic string
		if err := rows.Scan(&id, &topic); err != nil {
			s.Fatal(err)
		}
		if takes(subscription, topic) {
			set[id] = true
		}
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return set
}

// log are the events of the stream.
func (s *stage) log() map[uuid.UUID]string {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `SELECT id, topic FROM outbox_stream`)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	topics := make(map[uuid.UUID]string)
	for rows.Next() {
		var id uuid.UUID
		var topic string
		if err := rows.Scan(&id, &topic); err != nil {
			s.Fatal(err)
		}
		if _, twice := topics[id]; twice {
			s.Errorf("event %s is in the stream twice", id)
		}
		topics[id] = topic
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return topics
}
