package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/packfinderz/outbox"
)

// maxIdle is how many sessions are kept for the next calls.
const maxIdle = 4

// pool keeps sessions that nobody uses. The zero pool is empty.
type pool struct {
	mu     sync.Mutex
	idle   []*session
	closed bool
}

var errClosed = errors.New("the publisher is closed")

// take is a session that is connected, one that is idle or a new one.
func (p *pool) take(ctx context.Context, config *Config) (*session, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, outbox.Unavailable(errClosed)
	}
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = slices.Delete(p.idle, len(p.idle)-1, len(p.idle))
		if s.usable() {
			p.mu.Unlock()
			return s, nil
		}
		_ = s.close() // it is broken
	}
	p.mu.Unlock()
	s, err := dial(ctx, config)
	if err != nil {
		return nil, outbox.Unavailable(fmt.Errorf("connecting to RabbitMQ: %w", err))
	}
	return s, nil
}

// put takes a session back.
func (p *pool) put(s *session) {
	p.mu.Lock()
	keep := !p.closed && s.usable() && len(p.idle) < maxIdle
	if keep {
		p.idle = append(p.idle, s)
	}
	p.mu.Unlock()
	if !keep {
		_ = s.close() // nothing is under way on it
	}
}

// close closes the sessions; none is in use.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, s := range p.idle {
		errs = append(errs, s.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}
