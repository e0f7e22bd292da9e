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

// health knows whether connections fail. The client itself tries again without end and tells
// nobody.
type health struct {
	mu  sync.Mutex
	at  time.Time // of the last failure
	err error     // nil after a broker has answered a produce request
}

var (
	_ kgo.HookBrokerConnect = (*health)(nil)
	_ kgo.HookBrokerRead    = (*health)(nil)
)

// OnBrokerConnect notes a connection that could not be made.
func (h *health) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		h.note(err)
	}
}

// OnBrokerRead notes a connection that broke, and one that works.
func (h *health) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err != nil || key == int16(kmsg.Produce) {
		h.note(err)
	}
}

func (h *health) note(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // somebody here has given up; the connection may be good
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.err = time.Now(), err
}

// since is the failure of connections after a time, or otherwise.
func (h *health) since(t time.Time, otherwise error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || h.at.Before(t) {
		return otherwise
	}
	return unreachableError{h.err}
}
