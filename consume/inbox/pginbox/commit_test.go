package pginbox_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

var errBroken = errors.New("the connection broke")

// TestLostCommit breaks the connection at COMMIT, before it is sent and after it is done. A
// consumer cannot tell these apart; the next delivery can.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done    bool
		effects int // before the next delivery
	}{"the commit never arrives": {false, 0}, "its answer never arrives": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				event := uuid.New()
				ran, err := b.breaking(name, c.done).deliver(t.Context(), event, effect(event))
				if !ran || err == nil {
					t.Fatalf("delivered: %t, %v", ran, err)
				}
				b.want(event, c.effects, c.effects)
				b.deliver(b.door(name), event, !c.done)
				b.want(event, 1, 1)
			})
		})
	}
}

// breaking opens a door whose connections break at COMMIT.
func (b *bench) breaking(name string, done bool) *door {
	b.t.Helper()
	config, err := pgxpool.ParseConfig(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &breakingConn{Conn: conn, done: done}, err
	}
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(pool.Close)
	return b.doorOn(name, pool)
}

// breakingConn breaks when it sees a COMMIT: before sending it, or when its answer has come.
type breakingConn struct {
	net.Conn
	done bool
	sent atomic.Bool
}

func (c *breakingConn) Write(p []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(p), []byte("commit")) {
		if !c.done {
			return 0, errors.Join(errBroken, c.Close())
		}
		c.sent.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *breakingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.sent.Load() && err == nil {
		return 0, errors.Join(errBroken, c.Close())
	}
	return n, err
}
