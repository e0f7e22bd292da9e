package inboxtest

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
)

// Memory is an inbox in memory, for tests of consumers. It forgets when the process ends,
// so it is good for nothing else.
type Memory struct {
	ttl    inbox.TTL
	mu     sync.Mutex
	events map[place]*state
}

type place struct {
	consumer string
	event    uuid.UUID
}

type state struct {
	holder *claim // who has it, or had it last
	until  time.Time
	done   bool
}

// NewMemory makes an empty inbox.
func NewMemory(ttl inbox.TTL) (*Memory, error) {
	ttl, err := ttl.WithDefaults()
	if err != nil {
		return nil, err
	}
	return &Memory{ttl: ttl, events: make(map[place]*state)}, nil
}

// Begin takes an event.
func (m *Memory) Begin(ctx context.Context, consumer string, event uuid.UUID) (inbox.Claim, error) {
	if err := inbox.Check(consumer, event); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	at := place{consumer, event}
	if s := m.current(at); s != nil {
		if s.done {
			return nil, inbox.ErrDone
		}
		return nil, &inbox.InProgressError{Left: time.Until(s.until)}
	}
	c := &claim{inbox: m, at: at}
	m.events[at] = &state{holder: c, until: time.Now().Add(m.ttl.Processing)}
	return c, nil
}

// Done reports whether a consumer has handled an event.
func (m *Memory) Done(consumer string, event uuid.UUID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.current(place{consumer, event})
	return s != nil && s.done
}

// Expire ends every claim, as time would.
func (m *Memory) Expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, s := range m.events {
		if !s.done {
			delete(m.events, at)
		}
	}
}

// current is what is known of an event now; nil if it is free.
func (m *Memory) current(at place) *state {
	s := m.events[at]
	if s != nil && !time.Now().Before(s.until) {
		delete(m.events, at)
		return nil
	}
	return s
}

type claim struct {
	inbox *Memory
	at    place
}

func (c *claim) TTL() time.Duration { return c.inbox.ttl.Processing }

func (c *claim) Renew(ctx context.Context) error {
	return c.change(ctx, func(s *state) error {
		if s == nil || s.holder != c || s.done {
			return inbox.ErrLost
		}
		s.until = time.Now().Add(c.inbox.ttl.Processing)
		return nil
	})
}

func (c *claim) Finish(ctx context.Context) error {
	return c.change(ctx, func(s *state) error {
		if s != nil && s.holder != c {
			return inbox.ErrLost
		}
		if s == nil || !s.done {
			c.inbox.events[c.at] = &state{holder: c, done: true, until: time.Now().Add(c.inbox.ttl.Done)}
		}
		return nil
	})
}

func (c *claim) Release(ctx context.Context) error {
	return c.change(ctx, func(s *state) error {
		if s == nil || s.holder != c || s.done {
			return inbox.ErrLost
		}
		delete(c.inbox.events, c.at)
		return nil
	})
}

func (c *claim) change(ctx context.Context, change func(*state) error) error {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return change(c.inbox.current(c.at))
}
