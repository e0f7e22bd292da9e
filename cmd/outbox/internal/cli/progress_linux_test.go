package cli_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
)

// retryOrders and purgeOrders are what is done to thousands of events.
const (
	retryOrders = "retry --layout modkit --topic orders --batch-size 500"
	purgeOrders = "purge --layout modkit --retention 1h --batch-size 500"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	program := process.Build(t)
	t.Run("to the end", func(t *testing.T) {
		t.Parallel()
		testProgress(t, program)
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		testProgressInterrupted(t, program)
	})
	t.Run("no bar among events", func(t *testing.T) {
		t.Parallel()
		testNoProgress(t, program)
	})
	t.Run("interrupted at once", func(t *testing.T) {
		t.Parallel()
		s := newOrders(t)
		s.ordersFor(retryOrders, 5000)
		pgtest.Hold(t, s.pool, `LOCK outbox_audit`)
		log := filepath.Join(t.TempDir(), "screen")
		retry, keyboard := process.StartOnTerminal(t, log, 80, program, s.args(retryOrders, nil)...)
		s.interrupt(retry, keyboard, func() {})
		if rows := screen(readFile(t, log), 80); len(rows) != 1 || rows[0] != "outbox: interrupted after 0 events; to go on: the same command" {
			t.Errorf("the screen shows\n%s", strings.Join(rows, "\n"))
		}
	})
}

// testNoProgress replays events to the screen itself: there is no bar among them.
func testNoProgress(t *testing.T, program string) {
	t.Helper()
	s := newOrders(t)
	const events = 1500
	s.ordersFor(purgeOrders, events)
	log := filepath.Join(t.TempDir(), "screen")
	p, _ := process.StartOnTerminal(t, log, 80, program, s.args("replay --layout modkit --topic orders --to stdout:", nil)...)
	p.MustSucceed(t)
	if shown := readFile(t, log); strings.Count(shown, `{"id":`) != events || strings.Contains(shown, "[#") {
		t.Errorf("%d events, or not they alone: %.2000q", strings.Count(shown, `{"id":`), shown)
	}
}

// interrupt types Ctrl-C while a process waits for a lock, and then frees the lock.
func (s *standard) interrupt(p *process.Process, keyboard io.Writer, free func()) {
	s.Helper()
	pgtest.AwaitBlocked(s.T, s.pool, 1)
	if _, err := keyboard.Write([]byte("\x03")); err != nil {
		s.Fatal(err)
	}
	p.AwaitLog(s.T, "^C")
	free()
	if code := p.Wait(s.T); code != 1 {
		s.Errorf("exit code %d", code)
	}
}

// testProgress has terminals of several widths: a bar moves on one line, and the answer comes
// below it. Without a terminal there is only the answer.
func testProgress(t *testing.T, program string) {
	t.Helper()
	s := newOrders(t)
	const events, batch = 5000, 500
	for command, answer := range map[string]string{retryOrders: "retrying 5000 events", purgeOrders: "deleted 5000 events"} {
		for columns, bar := range map[uint16]string{
			80: "[" + strings.Repeat("#", 40) + "] 5000 of 5000",
			40: "[" + strings.Repeat("#", 24) + "] 5000 of 5000",
			14: "5000 of 5000",
			10: "5000",
		} {
			s.ordersFor(command, events)
			log := filepath.Join(t.TempDir(), "screen")
			p, _ := process.StartOnTerminal(t, log, columns, program, s.args(command, nil)...)
			p.MustSucceed(t)
			shown := readFile(t, log)
			if rows := screen(shown, int(columns)); rows[0] != bar || strings.Join(rows[1:], "") != answer {
				t.Errorf("%s: %d columns show\n%s\nof %q", command, columns, strings.Join(rows, "\n"), shown)
			}
			for done := batch; done <= events; done += batch {
				if drawn := regexp.MustCompile(fmt.Sprintf(`\r(\[[#.]+\] )?%d\b`, done)); !drawn.MatchString(shown) {
					t.Errorf("%s: %d columns do not show %d events: %q", command, columns, done, shown)
				}
			}
		}
		s.ordersFor(command, events)
		log := filepath.Join(t.TempDir(), "log")
		process.Start(t, log, nil, program, s.args(command, nil)...).MustSucceed(t)
		if got := readFile(t, log); got != answer+"\n" {
			t.Errorf("%s: the log is %q", command, got)
		}
	}
}

// ordersFor writes the events that a command is for, and no others.
func (s *standard) ordersFor(command string, events int) {
	s.Helper()
	pgtest.Exec(s.T, s.pool, `TRUNCATE modkit_outbox_events`)
	s.deadOrders(events)
	if command == purgeOrders {
		pgtest.Exec(s.T, s.pool, `UPDATE modkit_outbox_events SET status = 'delivered',
			next_attempt_at = now() - interval '1 day', updated_at = now() - interval '1 day'`)
	}
}

// testProgressInterrupted types Ctrl-C in the middle of a retry. The batch is finished, the bar
// stays as it was then, and below it is how to go on.
func testProgressInterrupted(t *testing.T, program string) {
	t.Helper()
	const events, batch = 20_000, 500
	s := newOrders(t)
	s.ordersFor(retryOrders, events)
	// The retry stands still in its fifth batch.
	pgtest.Exec(t, s.pool, `
		CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF (SELECT count(*) FROM modkit_outbox_events WHERE status = 'pending') = 2000 THEN
				PERFORM pg_advisory_xact_lock(1);
			END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER gate BEFORE UPDATE ON modkit_outbox_events EXECUTE FUNCTION gate()`)
	free := pgtest.Hold(t, s.pool, `SELECT pg_advisory_xact_lock(1)`)
	log := filepath.Join(t.TempDir(), "screen")
	retry, keyboard := process.StartOnTerminal(t, log, 80, program, s.args(retryOrders, nil)...)
	s.interrupt(retry, keyboard, free)
	done := s.count("modkit_outbox_events WHERE status = 'pending'")
	if done%batch != 0 || done == events {
		t.Errorf("%d events are retried", done)
	}
	shown := readFile(t, log)
	rows := screen(shown, 80)
	if bar := fmt.Sprintf("%d of %d", done, events); !regexp.MustCompile(`^\[#+\.+\] ` + bar + `$`).MatchString(rows[0]) {
		t.Errorf("the bar is %q", rows[0])
	}
	below := fmt.Sprintf("retrying %[1]d events\noutbox: interrupted after %[1]d events; to go on: the same command", done)
	if !strings.HasPrefix(strings.Join(rows[1:], "\n"), below) {
		t.Errorf("the screen shows\n%s\nof %q", strings.Join(rows, "\n"), shown)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// screen are the rows of a terminal to which a text was written. It knows what the bar uses: to
// go back to the first column, and to clear the rest of a row.
func screen(text string, columns int) (rows []string) {
	const clearRest = "\x1b[K"
	row, column := []byte{}, 0
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, clearRest):
			row, text = row[:column], text[len(clearRest):]
			continue
		case text[0] == '\r':
			column = 0
		case text[0] == '\n':
			rows, row = append(rows, string(row)), nil
		default:
			if column == columns {
				rows, row, column = append(rows, string(row)), nil, 0
			}
			row = append(row[:column], append([]byte{text[0]}, row[min(column+1, len(row)):]...)...)
			column++
		}
		text = text[1:]
	}
	return rows
}
