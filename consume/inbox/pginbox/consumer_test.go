package pginbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// order is what a consumer process is to do.
type order struct {
	URL  string
	Door string
	// StandAt is the point at which it waits to be told to go on.
	StandAt string `json:"-"`
	// Fault breaks the rules: see fault_test.go.
	Fault string
	// Races is how many goroutines are to handle each event at once; 0 for one, once.
	Races int
}

// process is a consumer, seen from inside.
type process struct {
	*inboxtest.Consumer
	order order
	door  *door
}

// consume handles events until its input ends.
func consume(role []byte, consumer *inboxtest.Consumer) error {
	c := process{Consumer: consumer}
	if err := json.Unmarshal(role, &c.order); err != nil {
		return err
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, c.order.URL)
	if err != nil {
		return err
	}
	defer pool.Close()
	if c.door, err = openDoor(c.order.Door, pool); err != nil {
		return err
	}
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	return c.Consume(func(event uuid.UUID) error { return c.deliver(ctx, event) })
}

func (c *process) deliver(ctx context.Context, event uuid.UUID) error {
	switch {
	case c.order.Races > 0:
		return c.race(ctx, event)
	case c.order.Fault != "":
		return c.deliverWrongly(ctx, event)
	}
	_, err := c.door.deliver(ctx, event, func(ctx context.Context, exec execute) error { return c.work(ctx, exec, event) })
	return err
}

func (c *process) work(ctx context.Context, exec execute, event uuid.UUID) error {
	c.Reach(inboxtest.AfterBegin)
	err := effectWith(ctx, exec, event, func() { c.Reach(inboxtest.DuringEffect) })
	c.Reach(inboxtest.AfterEffect)
	return err
}

func (c *process) race(ctx context.Context, event uuid.UUID) error {
	errs := make([]error, c.order.Races)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = c.door.deliver(ctx, event, effect(event)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// start starts a consumer process. It does not outlive the test.
func (b *bench) start(o order) *inboxtest.Process {
	b.t.Helper()
	if o.URL == "" {
		o.URL = b.url
	}
	return inboxtest.Start(b.t, o, o.StandAt)
}
