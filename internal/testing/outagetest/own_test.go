package outagetest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// own is a publisher as a user writes one: it dials for every batch, writes a line for each message and reads one back,
// and returns errors as they are.
type own struct {
	address string
	timeout atomic.Int64 // of a dial
	panics  atomic.Bool
}

func (p *own) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Duration(p.timeout.Load())}
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	return conn, err
}

// say says a line and wants it back.
func say(conn net.Conn, answers *bufio.Reader, line string) error {
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return fmt.Errorf("say: %w", err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		return fmt.Errorf("hear: %w", err)
	}
	return nil
}

// Publish says the ids.
func (p *own) Publish(ctx context.Context, messages []outbox.Message) []error {
	if p.panics.Load() {
		panic("assignment to entry in nil map")
	}
	errs := make([]error, len(messages))
	conn, err := p.dial(ctx)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	for i := range messages {
		errs[i] = say(conn, answers, messages[i].ID.String())
	}
	return errs
}

// ownPinger is one that can be pinged.
type ownPinger struct{ own }

// Ping says something else.
func (p *ownPinger) Ping(ctx context.Context) error {
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return say(conn, bufio.NewReader(conn), "ping")
}

// listener is the other side: it keeps the ids that it is told, and says every line back.
type listener struct {
	hangsUp atomic.Bool

	mu  sync.Mutex
	ids []uuid.UUID
}

func (l *listener) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(conn)
	for lines.Scan() && !l.hangsUp.Load() {
		if id, err := uuid.Parse(strings.TrimSpace(lines.Text())); err == nil {
			l.mu.Lock()
			l.ids = append(l.ids, id)
			l.mu.Unlock()
		}
		if _, err := fmt.Fprintln(conn, lines.Text()); err != nil {
			return
		}
	}
}

func (l *listener) start(t testing.TB) (address string) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := server.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				running.Go(func() { l.serve(conn) })
			}
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return server.Addr().String()
}

const dialTimeout = 10 * time.Second

func ownDestination(t testing.TB, pings bool) outagetest.Destination {
	t.Helper()
	l := &listener{}
	proxy := tcpproxy.New(t, l.start(t)) // cut before the listener waits for its connections
	publisher := &ownPinger{own{address: proxy.Address()}}
	publisher.timeout.Store(int64(dialTimeout))
	on := func(change func()) func(testing.TB) { return func(testing.TB) { change() } }
	d := outagetest.Destination{
		Publisher: func(testing.TB) outbox.Publisher {
			if pings {
				return publisher
			}
			return &publisher.own
		},
		Received: func(testing.TB) []uuid.UUID {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.ids
		},
		Faults: []outagetest.Fault{
			{Name: "refused", Begin: on(proxy.Cut), End: proxy.Restore},
			{Name: "hung", Begin: on(proxy.Swallow), End: on(proxy.Resume)},
			{Name: "EOF", Begin: on(func() { l.hangsUp.Store(true) }), End: on(func() { l.hangsUp.Store(false) })},
			{Name: "dial timeout", Begin: on(func() { publisher.timeout.Store(1) }), End: on(func() { publisher.timeout.Store(int64(dialTimeout)) })},
			{Name: "panic", Begin: on(func() { publisher.panics.Store(true) }), End: on(func() { publisher.panics.Store(false) })},
			{Name: "slow", Slow: true, Begin: on(func() { proxy.Throttle(2000) }), End: on(func() { proxy.Throttle(0) })},
		},
	}
	return d
}

// TestOutages is a user's own publisher, which knows nothing of classes of errors.
func TestOutages(t *testing.T) {
	t.Parallel()
	for name, pings := range map[string]bool{"with a ping": true, "without a ping": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outagetest.Run(t, func(t testing.TB) outagetest.Destination { t.Helper(); return ownDestination(t, pings) },
				"refused", "hung", "EOF", "dial timeout", "panic", "slow")
		})
	}
}
