package modkit_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestModuleRefuses checks that a module needs its namespace: all namespaces must be asked for by name.
func TestModuleRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for words, config := range map[string]modkit.Config{
		"Config.Namespace is missing": {},
		"must be between 100ms":       {Namespace: "mini-chat", LeaseDuration: time.Millisecond},
		"and 24h":                     {Namespace: "mini-chat", LeaseDuration: math.MaxInt64},
		"must be between 1 and":       {Namespace: "mini-chat", MaxAttempts: -1},
		"and 2147483647":              {Namespace: "mini-chat", MaxAttempts: math.MaxInt},
		"without NUL":                 {Namespace: "mini\x00chat"},
		"UTF-8":                       {Namespace: "mini-chat", Topics: []string{"usage", "\xff"}},
		"delay is negative":           {Namespace: "mini-chat", Retry: outbox.RetryPolicy{Base: -1}},
	} {
		if _, err := modkit.NewModule(b.pool, config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	if _, err := modkit.NewModule((*sql.DB)(nil), modkit.Config{Namespace: "mini-chat"}); err == nil {
		t.Error("a module without a database was made")
	}
	for _, all := range []string{modkit.AllNamespaces, "mini-chat"} {
		if _, err := modkit.NewModule(b.pool, modkit.Config{Namespace: all}); err != nil {
			t.Error(err)
		}
	}
}

// enqueueIn enqueues through a module.
func (b *bed) enqueueIn(module *modkit.Module, messages ...modkit.Message) (enqueued []modkit.Enqueued, err error) {
	b.Helper()
	err = b.inTx("pgx", true, func(tx modkit.Tx, _ func(string) error) error {
		enqueued, err = module.Enqueue(b.Context(), tx, messages...)
		return err
	})
	return enqueued, err
}

// TestModuleKeepsToItself lets two modules share the table: no call of one reaches a message of the other.
func TestModuleKeepsToItself(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	chat, billing := b.module(modkit.Config{Namespace: "mini-chat", MaxAttempts: 1}), b.module(modkit.Config{Namespace: "billing", MaxAttempts: 1})
	message := modkit.Message{Topic: "usage", Payload: []byte(`{}`)}
	foreign := message
	foreign.Namespace = "billing"
	if _, err := b.enqueueIn(chat, foreign); !errors.Is(err, outbox.ErrInvalidEvent) || !strings.Contains(err.Error(), "in its own") {
		t.Errorf("a message of another namespace: %v", err)
	}
	enqueued, err := b.enqueueIn(chat, message, message)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM modkit_outbox_events WHERE namespace = 'mini-chat'`); n != 2 {
		t.Fatalf("%d messages in the module's namespace, want 2", n)
	}
	id := enqueued[0].ID
	b.claim(billing, 0)
	held := b.claim(chat, 2)
	b.expire()
	nothing := func() {
		if n, err := billing.Sweep(t.Context()); err != nil || n != 0 {
			t.Errorf("another module swept %d: %v", n, err)
		}
		if s, err := billing.Stats(t.Context()); err != nil || s != (outbox.Stats{}) {
			t.Errorf("another module counted %+v: %v", s, err)
		}
		if ids, err := billing.Retry(t.Context(), id); err != nil || len(ids) != 0 {
			t.Errorf("another module retried %v: %v", ids, err)
		}
	}
	nothing()
	if n, err := chat.Sweep(t.Context()); err != nil || n != 2 {
		t.Errorf("swept %d: %v", n, err)
	}
	nothing()
	b.want(id, dead, 1)
	if s, err := chat.Stats(t.Context()); err != nil || s.Dead != 2 {
		t.Errorf("counted %+v: %v", s, err)
	}
	if ids, err := chat.Retry(t.Context(), id); err != nil || len(ids) != 1 {
		t.Errorf("retried %v: %v", ids, err)
	}
	b.want(id, pending, 0)
	if err := chat.Ack(t.Context(), held[0]); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Errorf("an ack of a message that was retried: %v", err)
	}
	if err := chat.Ack(t.Context(), b.claim(chat, 1)[0]); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, b.pool, `UPDATE modkit_outbox_events SET next_attempt_at = next_attempt_at - interval '1 hour', updated_at = updated_at - interval '1 hour'`)
	for _, c := range []struct {
		module *modkit.Module
		want   int64
	}{{billing, 0}, {chat, 1}} {
		if n, err := c.module.Purge(t.Context(), outbox.Purge{Retention: time.Minute}); err != nil || n != c.want {
			t.Errorf("purged %d, want %d: %v", n, c.want, err)
		}
	}
	b.want(enqueued[1].ID, dead, 1)
}

// TestModuleOnSQL makes every call of the contract on database/sql, opened in two ways, with a single connection.
func TestModuleOnSQL(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*bed) *sql.DB{
		"by name": func(b *bed) *sql.DB { return b.sql() },
		"from a pool": func(b *bed) *sql.DB {
			db := stdlib.OpenDBFromPool(b.pool)
			b.Cleanup(func() { _ = db.Close() })
			return db
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			db := open(b)
			db.SetMaxOpenConns(1)
			worker := uuid.New()
			module, err := modkit.NewModule(db, modkit.Config{Namespace: "mini-chat", WorkerID: worker, MaxAttempts: 2, LeaseDuration: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if module.WorkerID() != worker {
				t.Errorf("the worker is %s", module.WorkerID())
			}
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			message := modkit.Message{Topic: "usage", Payload: []byte(`{}`)}
			if _, err := module.Enqueue(t.Context(), tx, message, message, message); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			messages := b.claim(module, 3)
			for call, err := range map[string]error{
				"ack":     module.Ack(t.Context(), messages[0]),
				"nack":    module.Nack(t.Context(), messages[1], outbox.Terminal(errors.New("no"))),
				"renew":   module.Renew(t.Context(), messages[2]),
				"release": module.Release(t.Context(), messages[2]),
			} {
				if err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}
			if s, err := module.Stats(t.Context()); err != nil || s.Dead != 1 || s.Due != 1 {
				t.Errorf("%+v: %v", s, err)
			}
			if ids, err := module.Retry(t.Context(), messages[1].ID); err != nil || len(ids) != 1 {
				t.Errorf("retried %v: %v", ids, err)
			}
			if _, err := module.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := module.Purge(t.Context(), outbox.Purge{Retention: time.Hour}); err != nil {
				t.Error(err)
			}
			if open := db.Stats().InUse; open != 0 {
				t.Errorf("%d connections are in use", open)
			}
			db.SetMaxOpenConns(3)
			dispatcher, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{
				Otherwise: func(context.Context, modkit.ClaimedMessage) error { return nil }, PollInterval: 20 * time.Millisecond, Logger: b.logger(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := dispatcher.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.want(messages[2].ID, delivered, 1)
		})
	}
}

// TestClaimCfg lets each claim set its own size, lease and maximum.
func TestClaimCfg(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.enqueue(5)
	module := b.module(modkit.Config{Retry: outbox.RetryPolicy{Base: time.Nanosecond, Max: time.Nanosecond}})
	for _, cfg := range []modkit.ClaimCfg{{}, {BatchSize: -1}, {BatchSize: 100_001}, {BatchSize: 1, LeaseDuration: -1}, {BatchSize: 1, MaxAttempts: -1}} {
		if _, err := module.ClaimBatch(t.Context(), cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	for words, purge := range map[string]outbox.Purge{
		"retention must be positive": {}, "between 1 and": {Retention: time.Hour, BatchSize: -1},
		"of dead letters is -1h": {Retention: time.Hour, DeadLetterRetention: -time.Hour}, "no dead-letter table": {Retention: 1, DeadLetterRetention: 1},
		"and 2147483647": {Retention: time.Hour, BatchSize: math.MaxInt},
	} {
		if _, err := module.Purge(t.Context(), purge); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	if n := b.count(`SELECT count(*) FROM modkit_outbox_events WHERE attempts > 0`); n != 0 {
		t.Errorf("%d messages were claimed by claims that were refused", n)
	}
	seconds := func(id uuid.UUID) (lease float64) {
		err := b.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM locked_until - updated_at)::float8 FROM modkit_outbox_events WHERE id = $1`, id).Scan(&lease)
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	for _, c := range []struct {
		cfg   modkit.ClaimCfg
		lease time.Duration
		after string // of a nack
	}{
		{modkit.ClaimCfg{BatchSize: 1}, 30 * time.Second, pending},
		{modkit.ClaimCfg{BatchSize: 1, LeaseDuration: time.Hour, MaxAttempts: 5}, time.Hour, pending},
		{modkit.ClaimCfg{BatchSize: 1, LeaseDuration: 2 * time.Second, MaxAttempts: 1}, 2 * time.Second, dead},
	} {
		messages, err := module.ClaimBatch(t.Context(), c.cfg)
		if err != nil || len(messages) != 1 {
			t.Fatalf("%+v claimed %d: %v", c.cfg, len(messages), err)
		}
		id := messages[0].ID
		if got := seconds(id); got != c.lease.Seconds() {
			t.Errorf("%+v: a lease of %g s", c.cfg, got)
		}
		// A renewal is as long as the claim.
		pgtest.Exec(t, b.pool, `UPDATE modkit_outbox_events SET updated_at = now() WHERE id = $1`, id)
		if err := module.Renew(t.Context(), messages[0]); err != nil {
			t.Errorf("renew: %v", err)
		}
		if got := seconds(id); got < c.lease.Seconds() || got > c.lease.Seconds()+600 {
			t.Errorf("%+v: renewed for %g s", c.cfg, got)
		}
		if err := module.Nack(t.Context(), messages[0], errors.New("no")); err != nil {
			t.Fatal(err)
		}
		// Move it out of the way of the next.
		if r := b.row(id); r.status != c.after {
			t.Errorf("%+v: after a nack it is %s, want %s", c.cfg, r.status, c.after)
		}
		pgtest.Exec(t, b.pool, `UPDATE modkit_outbox_events SET next_attempt_at = 'infinity' WHERE id = $1 AND status = 'pending'`, id)
	}
	if err := module.Renew(t.Context(), modkit.ClaimedMessage{}); err == nil {
		t.Error("what nobody claimed was renewed")
	}
}

// TestRenew renews a message, and notices that another worker has it.
func TestRenew(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	module := b.module(modkit.Config{LeaseDuration: time.Hour})
	message := b.claim(module, 1)[0]
	pgtest.Exec(t, b.pool, `UPDATE modkit_outbox_events SET updated_at = updated_at - interval '10 minutes'`)
	if err := module.Renew(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM modkit_outbox_events WHERE locked_until > now() + interval '59 minutes'`); n != 1 {
		t.Error("the lease did not begin again")
	}
	b.expire()
	b.expire()
	if again := b.claim(b.module(modkit.Config{}), 1); again[0].ID != id {
		t.Fatal("another message")
	}
	if err := module.Renew(t.Context(), message); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Errorf("a renewal of what another worker has: %v", err)
	}
	if err := module.Nack(t.Context(), message, errors.New("no")); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Errorf("a nack of what another worker has: %v", err)
	}
	b.want(id, processing, 2)
}

// TestReclaimAtOnce lets a worker die: the very next claim takes over its message, whatever the lease, even by a
// module that has just looked.
func TestReclaimAtOnce(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{2 * time.Second, 24 * time.Hour} {
		b := newBed(t)
		id := b.enqueue(1)[0]
		b.claim(b.module(modkit.Config{}), 1)
		module := b.module(modkit.Config{LeaseDuration: lease})
		b.claim(module, 0)
		b.expire()
		// On a busy machine a claim may have taken so long that the next waits for ten times that.
		await.Until(t, "the message to be claimed", func() bool { return len(b.claimAll(module)) == 1 })
		b.want(id, processing, 2)
	}
}
