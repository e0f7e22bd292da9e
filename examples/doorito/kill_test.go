package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// build builds the service into a folder of the test.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "doorito")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return program
}

// process is the service as a process of its own.
type process struct {
	*client
	*testserver.Process
	log string
}

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// start runs the service on a database until the end of the test.
func start(t *testing.T, program, url string) *process {
	t.Helper()
	p := &process{client: newClient(""), log: filepath.Join(t.TempDir(), "log")}
	// A short lease: what a killed process held is free soon.
	cmd := exec.Command(program, "--database", url, "--listen", "127.0.0.1:0", "--lease", "1s")
	var err error
	if p.Process, err = testserver.Start(cmd, p.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.http.CloseIdleConnections()
	})
	await.Until(t, "the service to listen", func() bool {
		if found := listening.FindSubmatch(p.said(t)); found != nil {
			p.url = string(found[1])
		}
		return p.url != ""
	})
	return p
}

// said is what the process has printed.
func (p *process) said(t *testing.T) []byte {
	t.Helper()
	said, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// use uploads n files and creates n users, by names of their own.
func (p *process) use(ctx context.Context, round string, n int) error {
	for i := range n {
		name := fmt.Sprintf("%s-%d", round, i)
		if _, err := p.upload(ctx, name+".png", name, "meow"); err != nil {
			return err
		}
		if _, err := p.signUp(ctx, name+"@example.com"); err != nil {
			return err
		}
	}
	return nil
}

// TestKilled kills the service (kill -9) at the worst of times: the effects of some events are
// committed and the events are not settled, others are stored and not handled, and requests are
// being served. Its next start makes up for all of it, and nothing happens twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	program, url := build(t), pgtest.URL(t)
	first := start(t, program, url)
	pool := pgtest.Connect(t, url)
	if err := first.use(t.Context(), "before", 5); err != nil {
		t.Fatal(err)
	}
	awaitDelivered(t, pool)

	// The handlers of a file and a user are held up until their events' rows are locked; their
	// effects are committed then, and the relay cannot settle.
	const hold = `LOCK TABLE thumbnail_jobs, welcome_mails IN SHARE MODE`
	effects := pgtest.Hold(t, pool, hold)
	if err := first.use(t.Context(), "unsettled", 1); err != nil {
		t.Fatal(err)
	}
	pgtest.AwaitBlocked(t, pool, 2)
	rows := pgtest.Hold(t, pool, `SELECT FROM outbox_event WHERE status = 'pending' FOR UPDATE`)
	effects()
	await.Until(t, "both effects to be committed", func() bool {
		return count(t, pool, `thumbnail_jobs`) == 6 && count(t, pool, `welcome_mails`) == 6
	})
	// Users go on meanwhile, and into the kill.
	effects = pgtest.Hold(t, pool, hold)
	if err := first.use(t.Context(), "unhandled", 10); err != nil {
		t.Fatal(err)
	}
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		for i := 0; first.use(t.Context(), fmt.Sprintf("asking-%d", i), 1) == nil; i++ {
		}
	}()
	first.Kill()
	<-asking
	// The sessions of a machine that is gone: what they wait to do, they never will.
	pgtest.Exec(t, pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	effects()
	rows()
	if unsettled := count(t, pool, `outbox_event WHERE status = 'pending'`); unsettled < 22 {
		t.Fatalf("the kill hit %d events, want at least 22", unsettled)
	}

	second := start(t, program, url)
	// A client that does not know whether its upload got through sends it again.
	if err := second.use(t.Context(), "after", 5); err != nil {
		t.Fatal(err)
	}
	if _, err := second.upload(t.Context(), "unsettled-0.png", "unsettled-0", "meow"); err != nil {
		t.Fatal(err)
	}
	awaitDelivered(t, pool)
	for _, again := range []string{"has its thumbnail job already", "has a welcome mail already"} {
		if !bytes.Contains(second.said(t), []byte(again)) {
			t.Errorf("no event was handled a second time: nothing %s", again)
		}
	}
	for what, wrong := range map[string]string{
		"files without exactly one thumbnail job": `files WHERE (SELECT count(*) FROM thumbnail_jobs WHERE file_id = files.id) <> 1`,
		"users without exactly one welcome mail":  `users WHERE (SELECT count(*) FROM welcome_mails WHERE user_id = users.id) <> 1`,
		"files that were stored twice":            `(SELECT FROM files GROUP BY name HAVING count(*) > 1) AS twice`,
	} {
		if n := count(t, pool, wrong); n > 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if stored := count(t, pool, `files`); stored < 21 {
		t.Errorf("%d files are stored, want at least 21", stored)
	}
}

func awaitDelivered(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	await.Until(t, "all events to be delivered", func() bool {
		return count(t, pool, `outbox_event WHERE status <> 'delivered'`) == 0
	})
}

// count is the number of rows of a table, or of some of them.
func count(t *testing.T, pool *pgxpool.Pool, from string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM `+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
