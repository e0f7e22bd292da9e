// Package tcpproxy stands between a client and a server, and can be cut, swallow everything, be
// slow or talk nonsense: tests use it to take a broker away that is not theirs to kill.
package tcpproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// Proxy passes connections on to a server until it is cut.
type Proxy struct {
	address string
	target  string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]struct{}
	broken   chan struct{} // closed when the open connections are broken
	resumed  chan struct{} // closed unless everything is swallowed
	running  sync.WaitGroup

	garbled atomic.Bool
	rate    atomic.Int64 // bytes per second that a connection passes, each way; 0 for all
}

// New starts a proxy on a port of the loopback that stays its own while it is cut, and stops it
// with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		address: testserver.Loopback(port), target: target, open: make(map[net.Conn]struct{}),
		broken: make(chan struct{}), resumed: make(chan struct{}),
	}
	close(p.resumed)
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
	close(p.broken)
	p.broken = make(chan struct{})
}

// Swallow lets nothing pass, either way, until Resume: connections stay, and new ones are taken,
// as with a server that hangs or a network that drops every packet. What was sent meanwhile
// arrives afterwards.
func (p *Proxy) Swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.resumed:
		p.resumed = make(chan struct{})
	default: // it does already
	}
}

// Resume ends Swallow.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.resumed:
	default:
		close(p.resumed)
	}
}

// Garble breaks every connection and answers new ones with nonsense, as if something else had the
// port: no TLS handshake succeeds. False ends it.
func (p *Proxy) Garble(on bool) {
	p.garbled.Store(on)
	p.Break()
}

// garble answers a connection with what no client understands.
func (p *Proxy) garble(client net.Conn) {
	_, _ = client.Read(make([]byte, 8<<10)) // the client speaks first
	_, _ = client.Write([]byte("this is not the server that you are looking for\r\n"))
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = client.Close()
	delete(p.open, client)
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
		if p.garbled.Load() {
			if broken := p.keep(listener, client); broken != nil {
				p.running.Go(func() { p.garble(client) })
			}
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close() // the server is away, and so is the proxy
			continue
		}
		if broken := p.keep(listener, client, server); broken != nil {
			p.running.Go(func() { p.pass(server, client, broken) })
			p.running.Go(func() { p.pass(client, server, broken) })
		}
	}
}

// keep notes connections that were made, and tells when they are broken. It closes them, and
// answers nil, if the proxy was cut meanwhile.
func (p *Proxy) keep(listener net.Listener, conns ...net.Conn) (broken <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.listener == listener {
			p.open[conn] = struct{}{}
		} else {
			_ = conn.Close()
		}
	}
	if p.listener != listener {
		return nil
	}
	return p.broken
}

// Throttle lets every connection pass only so many bytes per second, each way; 0 lifts it.
func (p *Proxy) Throttle(bytesPerSecond int) { p.rate.Store(int64(bytesPerSecond)) }

// reader is as slow as the proxy, and reads nothing while that swallows everything.
type reader struct {
	*Proxy
	from   io.Reader
	broken <-chan struct{}
}

// Read reads a little, and takes the time for it.
func (r reader) Read(buffer []byte) (int, error) {
	rate := r.rate.Load()
	if rate > 0 {
		buffer = buffer[:min(len(buffer), int(max(rate/20, 1)))]
	}
	n, err := r.from.Read(buffer)
	if rate > 0 {
		time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	}
	r.mu.Lock()
	resumed := r.resumed
	r.mu.Unlock()
	select {
	case <-resumed:
	case <-r.broken:
	}
	return n, err
}

// pass copies until either side ends, and then ends the other.
func (p *Proxy) pass(to, from net.Conn, broken <-chan struct{}) {
	_, _ = io.Copy(to, reader{p, from, broken}) // a broken connection is what this is for
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = to.Close()
	_ = from.Close()
	delete(p.open, to)
	delete(p.open, from)
}
