package natsjs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
)

// link is a connection with the calls that wait for answers on it.
type link struct {
	conn   *nats.Conn
	inbox  string        // answers come to subjects that begin with this
	window chan struct{} // holds one for each message that is under way

	mu      sync.Mutex
	rounds  map[uint64]*round
	last    uint64
	refused error // why no answer can ever come
	missing error // why there is no connection, when there is none
}

// attempt is a link, once done is closed, or why there is none.
type attempt struct {
	done chan struct{}
	link *link
	err  error
}

// link returns the connection, if there is one now. It makes the first one, and another if the client gave up on
// the last; otherwise the client restores it by itself.
func (p *Publisher) link(ctx context.Context) (*link, error) {
	p.mu.Lock()
	if p.current == nil || p.current.over() {
		a := &attempt{done: make(chan struct{})}
		p.current = a
		go func() {
			defer close(a.done)
			a.link, a.err = connect(p.options, p.config.Window)
		}()
	}
	current := p.current
	p.mu.Unlock()
	select {
	case <-current.done:
	case <-ctx.Done():
		return nil, outbox.Unavailable(fmt.Errorf("connect to NATS: %w", ctx.Err()))
	}
	if current.err != nil {
		return nil, away(fmt.Errorf("connect to NATS: %w", current.err))
	}
	if !current.link.conn.IsConnected() {
		return nil, away(current.link.absence())
	}
	return current.link, nil
}

// over reports whether nothing more will come of it.
func (a *attempt) over() bool {
	select {
	case <-a.done:
		return a.err != nil || a.link.conn.IsClosed()
	default:
		return false
	}
}

// absence says why there is no connection.
func (l *link) absence() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missing != nil {
		return fmt.Errorf("not connected to NATS: %w", l.missing)
	}
	return errors.New("not connected to NATS")
}

// missed records why there is no connection.
func (l *link) missed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing = err
}

// connect makes a connection on which answers are awaited.
func connect(options nats.Options, window int) (*link, error) {
	l := &link{
		inbox:  nats.NewInbox() + ".",
		window: make(chan struct{}, window),
		rounds: make(map[uint64]*round),
	}
	options.Name = "outbox relay"
	options.DisconnectedErrCB = func(_ *nats.Conn, err error) { l.lost(err) }
	options.ReconnectErrCB = func(_ *nats.Conn, err error) { l.missed(err) }
	options.ClosedCB = func(conn *nats.Conn) { l.lost(conn.LastError()) }
	options.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) { l.complaint(err) }
	conn, err := options.Connect()
	if err != nil {
		return nil, err
	}
	l.conn = conn
	if _, err := conn.Subscribe(l.inbox+">", l.answered); err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return l, nil
}

// lost ends every waiting call: the answer to a message comes only on the connection it was sent on.
func (l *link) lost(err error) {
	err = cmp.Or(err, nats.ErrDisconnected)
	l.missed(err)
	for _, r := range l.waiting() {
		r.fail(disconnectedError{err}, "")
	}
}

// complaint handles the server's errors about a message or a subscription, which come apart from the answers.
func (l *link) complaint(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return // of a connection that ends, which is told by lost
	}
	if match := deniedSubject.FindStringSubmatch(err.Error()); match != nil {
		for _, r := range l.waiting() {
			r.fail(deniedError{err}, match[1])
		}
		return
	}
	if strings.Contains(err.Error(), "Subscription to") {
		err = unreadableError{err}
		l.mu.Lock()
		l.refused = err
		l.mu.Unlock()
		for _, r := range l.waiting() {
			r.fail(disconnectedError{err}, "")
		}
	}
}

var deniedSubject = regexp.MustCompile(`Publish to "([^"]*)"`)

func (l *link) waiting() []*round {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.rounds))
}
