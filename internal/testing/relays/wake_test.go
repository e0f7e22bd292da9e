package relays_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// wholeStore is all that a store can do.
type wholeStore interface {
	outbox.Store
	outbox.Listener
}

// watched tells when the relay looks at its store.
type watched struct {
	wholeStore
	claims chan time.Time
}

// Leave passes on what only some stores can.
func (w *watched) Leave(ctx context.Context) error {
	if leaver, ok := w.wholeStore.(outbox.Leaver); ok {
		return leaver.Leave(ctx)
	}
	return nil
}

func (w *watched) Claim(ctx context.Context, request outbox.ClaimRequest) (outbox.Batch, error) {
	select {
	case w.claims <- time.Now():
	default: // nobody watches just now
	}
	return w.wholeStore.Claim(ctx, request)
}

// watch watches a configuration's store.
func watch(t testing.TB, config outbox.RelayConfig) (*watched, <-chan time.Time) {
	t.Helper()
	store, ok := config.Store.(wholeStore)
	if !ok {
		t.Fatalf("the store is a %T", config.Store)
	}
	w := &watched{wholeStore: store, claims: make(chan time.Time)}
	return w, w.claims
}

const (
	// drowsy is a pause after which the next one is at least as long: pauses double, and
	// jitter takes at most half.
	drowsy = 6 * time.Second
	// prompt is when a relay must look at the latest if it was woken in such a pause.
	prompt = drowsy * 3 / 4
)

// sleepy is a relay's configuration whose pauses grow to hours.
func (b *bed) sleepy() (outbox.RelayConfig, *watched) {
	b.Helper()
	config := b.config(6, pgstore.Config{Lease: 10 * time.Hour})
	config.Poll, config.Listen = 3*time.Hour, true
	w, _ := watch(b, config)
	config.Store = w
	return config, w
}

// fallAsleep returns at the start of a pause that is at least drowsy long.
func (w *watched) fallAsleep(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := w.next(ctx, t)
	for {
		claim := w.next(ctx, t)
		if claim.Sub(last) >= drowsy {
			return
		}
		last = claim
	}
}

// wakesPromptly fails unless the relay looks before polling would have made it.
func (w *watched) wakesPromptly(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), prompt)
	defer cancel()
	w.next(ctx, t)
}

func (w *watched) next(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	select {
	case claim := <-w.claims:
		return claim
	case <-ctx.Done():
		t.Fatal("the relay did not look in time")
		return time.Time{}
	}
}

func (b *bed) notifier() (notifier interface {
	Notify()
	Close()
},
) {
	b.Helper()
	var err error
	if b.name == stream {
		notifier, err = pgstream.NewNotifier(b.pool, pgstream.Stream{})
	} else {
		notifier, err = pgstore.NewNotifier(b.pool, b.layout)
	}
	if err != nil {
		b.Fatal(err)
	}
	return notifier
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		notifier := b.notifier()
		defer notifier.Close()
		b.emitter = b.newEmitter(outbox.EmitConfig{Nudge: notifier.Notify})
		config, store := b.sleepy()
		relay := b.start(config)
		store.fallAsleep(b.T)
		ids := b.emit(3)
		store.wakesPromptly(b.T)
		b.waitReceived(3)
		// The listener's connection is lost, and comes back by itself. In silence the listener asks for its table now and then.
		b.waitSQL(`SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
			WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT ''outbox\_'' || to_regclass%')`)
		ids = append(ids, b.emit(3)...)
		b.waitReceived(6)
		outboxtest.Stop(b, relay)
		b.wantOnce(ids)
	})
}

// TestNotificationsDoNotArrive stands a proxy between relay and server that swallows
// notifications, as a pooler in transaction mode does: the relay says so once and polls.
func TestNotificationsDoNotArrive(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	b.url = deafProxy(b)
	config := b.config(6, pgstore.Config{})
	config.Listen = true
	relay := b.start(config)
	b.waitLogged("no wake-ups, polling instead")
	ids := b.emit(5)
	b.waitReceived(5)
	outboxtest.Stop(t, relay)
	b.wantOnce(ids)
	if n := b.logs.Count("no wake-ups"); n != 1 {
		b.Errorf("it was said %d times, want once", n)
	}
}

// deafProxy is the address of a proxy that changes LISTEN into something harmless.
func deafProxy(b *bed) string {
	b.Helper()
	parsed, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	query := parsed.Query()
	network, target := "unix", fmt.Sprintf("%s/.s.PGSQL.%s", query.Get("host"), query.Get("port"))
	if parsed.Host != "" {
		network, target = "tcp", parsed.Host
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, target)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				defer func() { _ = client.Close() }()
				_, _ = io.Copy(client, server)
			}()
			go func() {
				defer func() { _ = server.Close() }()
				deafen(client, server)
			}()
		}
	}()
	query.Set("host", "127.0.0.1")
	query.Set("port", strings.TrimPrefix(listener.Addr().String(), "127.0.0.1:"))
	parsed.Host, parsed.RawQuery = "", query.Encode()
	return parsed.String()
}

// deafen copies, but listens to something else than was asked for. The length stays.
func deafen(client io.Reader, server io.Writer) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if n > 0 {
			text := strings.ReplaceAll(string(buffer[:n]), `LISTEN "outbox_`, `LISTEN "deafx__`)
			if _, err := io.WriteString(server, text); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestNudgeInProcess is the quickest way: the emitter's process is the relay's.
func TestNudgeInProcess(t *testing.T) {
	t.Parallel()
	b := newBed(t, "doorito")
	config, store := b.sleepy()
	config.Listen = false
	relay := b.start(config)
	var err error
	if b.emitter, err = outboxpgx.New(b.layout, outbox.EmitConfig{Nudge: relay.Nudge}); err != nil {
		t.Fatal(err)
	}
	store.fallAsleep(t)
	ids := b.emit(3)
	store.wakesPromptly(t)
	b.waitReceived(3)
	outboxtest.Stop(t, relay)
	b.wantOnce(ids)
}

func TestNotifierRefusesALayout(t *testing.T) {
	t.Parallel()
	if _, err := pgstore.NewNotifier(nil, layouts.Layout{}); !errors.Is(err, outbox.ErrInvalidLayout) {
		t.Errorf("got %v", err)
	}
}
