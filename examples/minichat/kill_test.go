package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

const (
	killRounds = 2  // of each moment
	killTurns  = 10 // in each round
)

// TestKilled kills both services, again and again and in a random order, in the middle of what they
// do: the chat in a business transaction and with messages on their way to the broker, billing in the
// transaction that counts and between its commit and its ack. Each comes back on its own database. In the end the books balance: what
// billing has counted is what the turns have used, turn by turn.
func TestKilled(t *testing.T) {
	t.Parallel()
	nats := natstest.Bare(t, natstest.Settings{})
	proxy := tcpproxy.New(t, nats.Address())
	chat, billing, c := services(t, nats.URL(), "nats://"+proxy.Address())
	k := &killing{T: t, nats: nats, proxy: proxy, chat: chat, billing: billing, client: c}
	moments := slices.Repeat([]func([]turn){k.inTransaction, k.whilePublishing, k.whileCounting, k.afterCounting}, killRounds)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
	var all []turn
	for _, moment := range moments {
		turns := k.begin()
		all = append(all, turns...)
		moment(turns)
	}
	k.clients.Wait()
	if chat.kills != 2*killRounds || billing.kills != 2*killRounds {
		t.Errorf("the chat was killed %d times, billing %d times", chat.kills, billing.kills)
	}
	k.balance(all)
}

// killing is a run of TestKilled.
type killing struct {
	*testing.T
	nats          *natstest.Broker
	proxy         *tcpproxy.Proxy // between billing and the broker
	chat, billing *side
	client        *client
	clients       sync.WaitGroup
}

// begin begins the turns of a new tenant.
func (k *killing) begin() (turns []turn) {
	k.Helper()
	id := uuid.New()
	if err := k.client.setQuota(k.Context(), id, 1000); err != nil {
		k.Fatal(err)
	}
	for range killTurns {
		one := newTurn(id)
		if err := k.client.begin(k.Context(), one, "one two three"); err != nil {
			k.Fatal(err)
		}
		turns = append(turns, one)
	}
	return turns
}

// finalise has clients finalise turns until they are answered, in the background.
func (k *killing) finalise(turns []turn) {
	for i, one := range turns {
		k.clients.Go(func() {
			if err := finaliseTwice(k.Context(), k.client, one, i); err != nil {
				k.Error(err)
			}
		})
	}
}

// finaliseTwice finalises a turn as two clients do that know nothing of each other, or as one that
// got no answer.
func finaliseTwice(ctx context.Context, c *client, one turn, i int) error {
	outcomes := []string{"completed", "failed", "aborted"}
	var messages [2]uuid.UUID
	var errs [2]error
	var both sync.WaitGroup
	for try := range messages {
		both.Go(func() {
			errs[try] = retried(ctx, func() error {
				answer, err := c.finalise(ctx, one, outcomes[(i+try)%len(outcomes)], strings.Repeat("word ", (i+try)%4))
				messages[try] = answer.Event
				return err
			})
		})
	}
	both.Wait()
	if messages[0] != messages[1] {
		return fmt.Errorf("turn %s has messages %s and %s", one.dedupeKey(), messages[0], messages[1])
	}
	return errors.Join(errs[:]...)
}

// blocked waits until somebody waits for a lock with a statement of a side.
func (k *killing) blocked(pool *pgxpool.Pool, statement string) {
	k.Helper()
	await.Until(k, statement+" to wait", func() bool {
		return ask(k.T, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND query LIKE $1 || '%'`, statement) > 0
	})
}

// inTransaction kills the chat between two statements of its own.
func (k *killing) inTransaction(turns []turn) {
	k.Helper()
	free := pgtest.Hold(k, k.chat.pool, `SELECT FROM chat_quotas WHERE tenant_id = $1 FOR UPDATE`, turns[0].Tenant)
	k.finalise(turns[:1]) // the others would wait for the same lock, with all connections
	k.blocked(k.chat.pool, `UPDATE chat_quotas`)
	k.chat.kill()
	free()
	k.chat.start()
	k.finalise(turns[1:])
}

// whilePublishing kills the chat when it has claimed messages, and the broker has not answered.
func (k *killing) whilePublishing(turns []turn) {
	k.Helper()
	k.nats.Freeze(k)
	k.finalise(turns)
	await.Until(k, "messages to be on their way", func() bool {
		return ask(k.T, k.chat.pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'processing'`) > 0
	})
	k.chat.kill()
	k.nats.Thaw(k)
	k.chat.start()
}

// holdCounting has billing wait in the transaction that counts the turns of a tenant.
func (k *killing) holdCounting(turns []turn) (free func()) {
	k.Helper()
	free = pgtest.Hold(k, k.billing.pool, `INSERT INTO billing_accounts (tenant_id, turns, tokens) VALUES ($1, 0, 0)`, turns[0].Tenant)
	k.finalise(turns)
	k.blocked(k.billing.pool, `INSERT INTO billing_accounts`)
	return free
}

// whileCounting kills billing between two statements of its own.
func (k *killing) whileCounting(turns []turn) {
	k.Helper()
	free := k.holdCounting(turns)
	k.billing.kill()
	free()
	k.billing.start()
}

// afterCounting kills billing when it has counted, and the broker has not heard of it: the same
// messages come again.
func (k *killing) afterCounting(turns []turn) {
	k.Helper()
	free := k.holdCounting(turns)
	k.proxy.Swallow()
	free()
	await.Until(k, "usage to be counted", func() bool {
		return ask(k.T, k.billing.pool, `SELECT count(*) FROM billing_usage WHERE tenant_id = $1`, turns[0].Tenant) > 0
	})
	k.billing.kill()
	k.proxy.Break() // what was swallowed never arrives
	k.proxy.Resume()
	k.billing.start()
}

// balance waits until billing has counted as many turns as there are, and compares the books.
func (k *killing) balance(turns []turn) {
	k.Helper()
	n := int64(len(turns))
	await.Until(k, "all messages to be delivered, and counted", func() bool {
		return ask(k.T, k.chat.pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered'`) == n &&
			ask(k.T, k.billing.pool, `SELECT count(*) FROM billing_usage`) >= n
	})
	const sum = `SELECT coalesce(sum(tokens), 0)::bigint FROM `
	used := ask(k.T, k.chat.pool, sum+`chat_turns WHERE outcome IS NOT NULL`)
	for name, got := range map[string]int64{
		"quotas": ask(k.T, k.chat.pool, `SELECT sum(used)::bigint FROM chat_quotas`),
		"usage":  ask(k.T, k.billing.pool, sum+`billing_usage`), "accounts": ask(k.T, k.billing.pool, sum+`billing_accounts`),
	} {
		if got != used || used == 0 {
			k.Errorf("the turns have used %d tokens; %s say %d", used, name, got)
		}
	}
	const columns = `SELECT tenant_id::text || '/' || turn_id || '/' || request_id || ' ' || outcome || ' ' || tokens FROM `
	if written, counted := lines(k.T, k.chat.pool, columns+`chat_turns`), lines(k.T, k.billing.pool, columns+`billing_usage`); !slices.Equal(written, counted) {
		k.Errorf("the chat wrote\n%s\nand billing counted\n%s", strings.Join(written, "\n"), strings.Join(counted, "\n"))
	}
	for query, want := range map[string]int64{
		`SELECT count(*) FROM modkit_outbox_events`: n, `SELECT count(*) FROM chat_turns WHERE outcome IS NOT NULL`: n,
		`SELECT sum(reserved)::bigint FROM chat_quotas`: 0,
		// Somebody's lease ended with a kill.
		`SELECT (count(*) > 0)::int FROM modkit_outbox_events WHERE attempts > 1`: 1,
	} {
		if got := ask(k.T, k.chat.pool, query); got != want {
			k.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

// lines are what a query answers, in order.
func lines(t *testing.T, pool *pgxpool.Pool, query string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query+` ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}
