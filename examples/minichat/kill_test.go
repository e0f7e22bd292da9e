package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

const (
	killTenants = 3
	killTurns   = 12 // of each tenant
)

// program is the built example, on one database and one address.
type program struct {
	*testing.T
	binary, url, address string
	client               *client
}

func build(t *testing.T) *program {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{T: t, binary: filepath.Join(t.TempDir(), "minichat"), url: pgtest.URL(t), address: fmt.Sprintf("127.0.0.1:%d", port)}
	p.client = &client{base: "http://" + p.address}
	t.Cleanup(p.client.http.CloseIdleConnections)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return p
}

// start runs it, and waits until it serves.
func (p *program) start() *testserver.Process {
	p.Helper()
	cmd := exec.Command(p.binary, "--database", p.url, "--listen", p.address)
	process, err := testserver.Start(cmd, filepath.Join(p.TempDir(), "log"))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(process.Kill)
	err = process.AwaitReady(time.Minute, func() error {
		_, err := p.client.outbox(p.Context())
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return process
}

// retried sends a request until the service answers, as clients do. A refusal is an answer.
func retried(ctx context.Context, send func() error) (err error) {
	over := await.Poll(ctx, func() bool {
		err = send()
		return err == nil || errors.As(err, new(*refusal))
	})
	return errors.Join(over, err)
}

// TestKilled kills the service while turns are being finalised and their usage is being billed,
// and starts it again on the same database: every turn is counted once.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := build(t)
	first := p.start()
	pool := pgtest.Connect(t, p.url)
	var turns []turn
	for range killTenants {
		id := uuid.New()
		if err := p.client.setUp(t.Context(), id, 1000, true); err != nil {
			t.Fatal(err)
		}
		for range killTurns {
			turns = append(turns, newTurn(id))
		}
	}
	for _, one := range turns {
		if err := p.client.begin(t.Context(), one, "one two three"); err != nil {
			t.Fatal(err)
		}
	}
	// Billing stands still, and so does the quota of the first tenant: the kill meets events that are
	// held, and requests in the middle of their transaction.
	freeBilling := pgtest.Hold(t, pool, `LOCK TABLE billing_usage IN EXCLUSIVE MODE`)
	freeTenant := pgtest.Hold(t, pool, `SELECT FROM chat_quotas WHERE tenant_id = $1 FOR UPDATE`, turns[0].Tenant)
	var clients sync.WaitGroup
	problems := make(chan error, len(turns))
	restarted := make(chan struct{})
	for i, one := range turns {
		clients.Go(func() {
			if i > 0 && i < killTurns {
				<-restarted // the others of the first tenant would wait for the same lock
			}
			if err := finaliseTwice(t.Context(), p.client, one, i); err != nil {
				problems <- err
			}
		})
	}
	await.Until(t, "the kill to meet something", func() bool {
		return count(t, pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'processing'`) > 0 &&
			count(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND wait_event_type = 'Lock' AND query LIKE 'UPDATE chat_quotas%'`) > 0
	})
	first.Kill()
	freeBilling()
	freeTenant()
	p.start()
	close(restarted)
	clients.Wait()
	close(problems)
	for err := range problems {
		t.Error(err)
	}
	checkUsage(t, p, pool, turns)
}

// finaliseTwice finalises a turn as two clients do that know nothing of each other, or as one that
// got no answer.
func finaliseTwice(ctx context.Context, c *client, one turn, i int) error {
	outcomes := []string{"completed", "failed", "aborted"}
	var events [2]uuid.UUID
	var errs [2]error
	var both sync.WaitGroup
	for try := range events {
		both.Go(func() {
			errs[try] = retried(ctx, func() error {
				answer, err := c.finalise(ctx, one, outcomes[(i+try)%len(outcomes)], strings.Repeat("word ", i%4))
				events[try] = answer.Event
				return err
			})
		})
	}
	both.Wait()
	if events[0] != events[1] {
		return fmt.Errorf("turn %s has events %s and %s", one.dedupeKey(), events[0], events[1])
	}
	return errors.Join(errs[:]...)
}

// checkUsage waits until all is billed, and holds the sums against each other.
func checkUsage(t *testing.T, p *program, pool *pgxpool.Pool, turns []turn) {
	t.Helper()
	await.Until(t, "all events to be delivered", func() bool {
		return count(t, pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered'`) == int64(len(turns))
	})
	for query, want := range map[string]int64{
		`SELECT count(*) FROM modkit_outbox_events`: int64(len(turns)),
		`SELECT count(*) FROM billing_usage`:        int64(len(turns)),
		// What billing noted is what the chat wrote, turn by turn.
		`SELECT count(*) FROM billing_usage JOIN chat_turns USING (tenant_id, turn_id, request_id, outcome, tokens)`: int64(len(turns)),
		// Somebody's lease ended with the kill.
		`SELECT (count(*) > 0)::int FROM modkit_outbox_events WHERE attempts > 1`: 1,
	} {
		if got := count(t, pool, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	for at := 0; at < len(turns); at += killTurns {
		id := turns[at].Tenant
		got, err := p.client.tenant(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		for i := at; i < at+killTurns; i++ {
			want += 3 + int64(i%4)
		}
		if got.BilledTurns != killTurns || got.BilledTokens != want || got.Used != want || got.Reserved != 0 {
			t.Errorf("tenant %s: %+v, want %d turns and %d tokens", id, got, killTurns, want)
		}
	}
}

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
