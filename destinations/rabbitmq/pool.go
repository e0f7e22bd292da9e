package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxIdle is how many links are kept for the next calls.
const maxIdle = 4

// pool keeps links that nobody uses. The zero pool is empty.
type pool struct {
	mu   sync.Mutex
	idle []*link
}

// take is a link that is connected, one that is idle or a new one.
func (p *pool) take(ctx context.Context, config *Config) (*link, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		l := p.idle[len(p.idle)-1]
		p.idle = slices.Delete(p.idle, len(p.idle)-1, len(p.idle))
		if l.usable() {
			p.mu.Unlock()
			return l, nil
		}
		_ = l.close() // it is broken
	}
	p.mu.Unlock()
	l, err := dial(ctx, config)
	if err != nil {
		return nil, classifyDial(ctx, err)
	}
	return l, nil
}

// put takes a link back.
func (p *pool) put(l *link) {
	p.mu.Lock()
	keep := l.usable() && len(p.idle) < maxIdle
	if keep {
		p.idle = append(p.idle, l)
	}
	p.mu.Unlock()
	if !keep {
		_ = l.close() // nothing is under way on it
	}
}

// close closes the links; none is in use.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, l := range p.idle {
		errs = append(errs, l.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}
