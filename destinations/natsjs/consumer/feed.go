package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/internal/consuming"
)

// feed is a connection, with the durable consumer on it that messages come from.
type feed struct {
	consumer *Consumer
	conn     *nats.Conn
	durable  jetstream.Consumer // nil when it has to be looked up again
	ackWait  time.Duration
	changed  consuming.Signal // sent when the connection is back

	away  bool // as it was logged
	tries int  // in a row that failed
}

// open waits for the server and for its word on the durable consumer. It returns nil without an error if the
// context ended first.
func (c *Consumer) open(ctx context.Context) (*feed, error) {
	f := &feed{consumer: c, changed: consuming.NewSignal()}
	for ctx.Err() == nil {
		err := f.connect()
		if err == nil {
			err = f.find(ctx)
		}
		_, unfit := errors.AsType[unfitError](err)
		switch {
		case err == nil:
			f.note(nil)
			return f, nil
		case unfit:
			f.close()
			return nil, fmt.Errorf("natsjs consumer: %w", err)
		case ctx.Err() == nil:
			f.note(err)
			f.pause(ctx)
		}
	}
	f.close()
	return nil, nil //nolint:nilnil // it was told to end
}

func (f *feed) connect() error {
	if f.conn != nil {
		return nil
	}
	options := f.consumer.options
	options.Name = "outbox consumer " + f.consumer.config.Durable
	options.ReconnectedCB = func(*nats.Conn) { f.changed.Send() }
	options.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {} // the answers tell
	// It takes some seconds at most for each server; nothing can end it sooner.
	conn, err := options.Connect()
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	f.conn = conn
	return nil
}

func (f *feed) close() {
	if f.conn != nil {
		f.conn.Close()
	}
}

// ready reports whether messages can be asked for. If not, it waits a while and tries to fix that.
func (f *feed) ready(ctx context.Context) bool {
	if f.tries > 0 {
		f.pause(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case !f.conn.IsConnected():
		f.note(cmp.Or(f.conn.LastError(), nats.ErrDisconnected))
		return false
	case f.durable == nil:
		if err := f.find(ctx); err != nil {
			f.note(err)
			return false
		}
	}
	return true
}

// note counts what became of a request, and logs when the server goes and when it is back.
func (f *feed) note(err error) {
	if err == nil {
		if f.away {
			f.consumer.log.Info("messages can be read again")
		}
		f.away, f.tries = false, 0
		return
	}
	f.durable = nil
	f.tries++
	if !f.away {
		f.consumer.log.Warn("no messages can be read; waiting", "error", err)
	}
	f.away = true
}

// pause waits before the next try: until the connection is back, or as after a lost one.
func (f *feed) pause(ctx context.Context) {
	select {
	case <-time.After(f.consumer.options.CustomReconnectDelayCB(f.tries)):
	case <-f.changed:
	case <-ctx.Done():
	}
}
