package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is a connection with one channel. One Publish or Ping uses it at a time: a call that runs out of time can
// end its connection without harm to others, and AMQP has no other way to take back what was written.
type link struct {
	conn    net.Conn
	amqp    *amqp.Connection
	channel *amqp.Channel
	returns chan amqp.Return
	closes  chan *amqp.Error
	// declared are the exchanges and queues that are known to be there.
	declared map[string]bool

	mu    sync.Mutex
	cause error // why abort was called
}

const (
	dialTimeout = 10 * time.Second
	heartbeat   = 10 * time.Second
)

// dial connects, opens the vhost and is ready to publish, all before ctx ends.
func dial(ctx context.Context, config *Config) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, declared: make(map[string]bool)}
	release := l.abortWith(ctx)
	defer release()
	properties := amqp.Table{"product": "outbox", "connection_name": "outbox relay"}
	l.amqp, err = amqp.Open(conn, amqp.Config{
		SASL:  []amqp.Authentication{&login{amqp.PlainAuth{Username: config.Username, Password: config.Password}, properties}},
		Vhost: config.Vhost, FrameSize: frameSize, Heartbeat: heartbeat, Locale: "en_US", Properties: properties,
	})
	if err != nil {
		_ = conn.Close() // it may be closed already
		return nil, l.why(err)
	}
	go l.watchBlocks(l.amqp.NotifyBlocked(make(chan amqp.Blocking, 1)))
	return l, nil
}

// login makes the server say that it refuses a login. Otherwise it only closes the connection, which looks like a
// broken one.
type login struct {
	amqp.PlainAuth
	properties amqp.Table
}

// Response is called after the client has written its own capabilities and before it sends them: there is no other
// place to add one.
func (l *login) Response() string {
	if capabilities, ok := l.properties["capabilities"].(amqp.Table); ok {
		capabilities["authentication_failure_close"] = true
	}
	return l.PlainAuth.Response()
}

// connect connects to the first server that can be connected to.
func connect(ctx context.Context, config *Config) (net.Conn, error) {
	var errs []error
	for _, address := range config.Addresses {
		conn, err := connectTo(ctx, address, config.TLS)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func connectTo(ctx context.Context, address string, settings *tls.Config) (net.Conn, error) {
	if settings == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", address)
}

// watchBlocks ends the link when the server blocks publishers because it is short of memory or disk: it would not
// even read messages. It returns when the connection ends.
func (l *link) watchBlocks(blocks <-chan amqp.Blocking) {
	for block := range blocks {
		if block.Active {
			l.abort(fmt.Errorf("%w: %s", errBlocked, block.Reason))
		}
	}
}

var errBlocked = errors.New("RabbitMQ takes no messages for now")

// abortWith aborts the link when ctx ends before release is called.
func (l *link) abortWith(ctx context.Context) (release func()) {
	stop := context.AfterFunc(ctx, func() { l.abort(ctx.Err()) })
	return func() {
		if !stop() {
			l.abort(ctx.Err()) // at the latest now, before anybody else has the link
		}
	}
}

// abort ends the connection at once: whatever waits for it fails.
func (l *link) abort(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
	}
	_ = l.conn.Close() // it may be closed already
}

// why is the reason of an abort, or else err.
func (l *link) why(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.cause, err)
}

// ready opens a channel where the last one is closed.
func (l *link) ready() error {
	if l.channel != nil && !l.channel.IsClosed() {
		return nil
	}
	channel, err := l.amqp.Channel()
	if err != nil {
		return fmt.Errorf("opening a channel: %w", err)
	}
	if err := channel.Confirm(false); err != nil {
		return fmt.Errorf("asking for confirms: %w", err)
	}
	l.channel = channel
	// There is room for a round, so that the client never waits for us to read.
	l.returns = channel.NotifyReturn(make(chan amqp.Return, roundMessages))
	l.closes = channel.NotifyClose(make(chan *amqp.Error, 1))
	return nil
}

// reads checks whether the server still reads after it was sent a message: in an alarm it may have handled that one
// before it stopped.
func (l *link) reads(ctx context.Context) error {
	release := l.abortWith(ctx)
	defer release()
	return l.why(l.ready())
}

// usable tells whether the link can serve another call.
func (l *link) usable() bool { return !l.amqp.IsClosed() && l.why(nil) == nil }

// close closes the connection.
func (l *link) close() error {
	err := l.amqp.CloseDeadline(time.Now().Add(closeTimeout))
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	_ = l.conn.Close() // where the goodbye failed
	return err
}

const closeTimeout = 5 * time.Second
