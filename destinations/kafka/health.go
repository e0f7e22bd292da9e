package kafka

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// health knows whether connections fail. The client itself retries forever, silently.
type health struct {
	mu    sync.Mutex
	first time.Time // of the failures since a broker last answered a produce request
	at    time.Time // of the last one
	err   error     // nil after a broker has answered a produce request
	asked time.Time // when the last question was put that a broker answered
}

var (
	_ kgo.HookBrokerConnect = (*health)(nil)
	_ kgo.HookBrokerRead    = (*health)(nil)
)

// OnBrokerConnect records a connection that could not be made.
func (h *health) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		h.note(err)
	}
}

// OnBrokerRead records a connection that broke, and one that works.
func (h *health) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, wait, read time.Duration, err error) {
	if err != nil || key == int16(kmsg.Produce) {
		h.note(err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = time.Now().Add(-wait - read)
}

func (h *health) note(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed) {
		return // somebody here has given up; the connection may be good
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = time.Now()
	if h.err == nil {
		h.first = h.at
	}
	h.err = err
}

// since returns the connection failure after a time, or otherwise. It is partial if a broker was asked after the
// first failure, and answered.
func (h *health) since(t time.Time, otherwise error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || h.at.Before(t) {
		return otherwise
	}
	return unreachableError{h.err, h.asked.After(h.first)}
}
