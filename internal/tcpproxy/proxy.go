// Package tcpproxy stands between a client and a server, and can be cut: tests use it to
// take a broker away that is not theirs to kill.
package tcpproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/await"
	"github.com/packfinderz/outbox/internal/testserver"
)

// Proxy passes connections on to a server until it is cut.
type Proxy struct {
	address string
	target  string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]struct{}
	running  sync.WaitGroup

	rate atomic.Int64 // bytes per second that a connection passes, each way; 0 for all
}

// New starts a proxy on a port of the loopback that stays its own while it is cut, and stops it
// with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{address: testserver.Loopback(port), target: target, open: make(map[net.Conn]struct{})}
	p.Restore(t)
	t.Cleanup(p.Cut)
	return p
}

// Address is where to connect to.
func (p *Proxy) Address() string { return p.address }

// Cut breaks every connection and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close() // it only listens
		p.listener = nil
	}
	p.breakAll()
	p.mu.Unlock()
	p.running.Wait()
}

// Break breaks every connection; new ones are passed on.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakAll()
}

func (p *Proxy) breakAll() {
	for conn := range p.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as of a machine that is gone
		}
		_ = conn.Close() // that it may be closed already is fine
	}
	clear(p.open)
}

// Restore takes connections again, at the same address. A process that was just forked may hold
// the old listener for a moment: Restore waits until the port is free.
func (p *Proxy) Restore(t testing.TB) {
	t.Helper()
	await.Until(t, "the port of "+p.address+" to be free again", func() bool { return p.listen() == nil })
}

func (p *Proxy) listen() error {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
	return nil
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close() // the server is away, and so is the proxy
			continue
		}
		p.mu.Lock()
		if p.listener != listener {
			// Cut while it was being set up.
			_ = client.Close()
			_ = server.Close()
			p.mu.Unlock()
			return
		}
		p.open[client], p.open[server] = struct{}{}, struct{}{}
		p.running.Go(func() { p.pass(server, client) })
		p.running.Go(func() { p.pass(client, server) })
		p.mu.Unlock()
	}
}

// Throttle lets every connection pass only so many bytes per second, each way; 0 lifts it.
func (p *Proxy) Throttle(bytesPerSecond int) { p.rate.Store(int64(bytesPerSecond)) }

// throttled is a reader that is as slow as the proxy.
type throttled struct {
	from io.Reader
	rate *atomic.Int64
}

// Read reads a little, and takes the time for it.
func (t throttled) Read(buffer []byte) (int, error) {
	rate := t.rate.Load()
	if rate == 0 {
		return t.from.Read(buffer)
	}
	n, err := t.from.Read(buffer[:min(len(buffer), int(max(rate/20, 1)))])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	return n, err
}

// pass copies until either side ends, and then ends the other.
func (p *Proxy) pass(to, from net.Conn) {
	_, _ = io.Copy(to, throttled{from, &p.rate}) // a broken connection is what this is for
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = to.Close()
	_ = from.Close()
	delete(p.open, to)
	delete(p.open, from)
}
