package redisinbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// The parts of an effect, as they are in the file.
const (
	firstHalf  = "first half"
	secondHalf = "second half"
)

// role is what a process is to do.
type role struct {
	URL     string
	Effects string // the file
	// StandAt is the point at which it waits to be told to go on.
	StandAt string `json:"-"`
	// MarkBefore breaks the rule: the mark first, and then the effect.
	MarkBefore bool
	// Races is how many goroutines are to handle each event at once; 0 for one.
	Races int
}

// process is a consumer, seen from inside. Its effects are lines in a file.
type process struct {
	*inboxtest.Consumer
	role    role
	inbox   *redisinbox.Inbox
	effects *os.File
}

// play handles events until its input ends.
func play(text []byte, consumer *inboxtest.Consumer) error {
	p := process{Consumer: consumer}
	if err := json.Unmarshal(text, &p.role); err != nil {
		return err
	}
	client, err := dial(p.role.URL)
	if err != nil {
		return err
	}
	p.inbox, err = redisinbox.New(redisinbox.Config{Client: client, TTL: inbox.TTL{Processing: time.Second}})
	if err != nil {
		return err
	}
	if p.effects, err = os.OpenFile(p.role.Effects, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return err
	}
	return p.Consume(p.deliver)
}

func (p *process) deliver(event uuid.UUID) error {
	errs := make([]error, max(p.role.Races, 1))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = p.handle(event) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// handle tries again while another claim has the event, as redelivery does.
func (p *process) handle(event uuid.UUID) error {
	ctx := context.Background()
	if p.role.MarkBefore {
		processed, err := p.inbox.CheckAndMarkProcessed(ctx, inboxConsumer, event, time.Hour)
		if err != nil || processed {
			return err
		}
		return p.work(event)
	}
	for {
		_, err := inbox.Handle(ctx, p.inbox, inboxConsumer, event, func(context.Context) error { return p.work(event) })
		var held *inbox.InProgressError
		if !errors.As(err, &held) {
			return err
		}
		<-time.After(min(held.Left, 20*time.Millisecond)) // it is delivered again
	}
}

func (p *process) work(event uuid.UUID) error {
	p.Reach(inboxtest.AfterBegin)
	if _, err := fmt.Fprintln(p.effects, event, firstHalf); err != nil {
		return err
	}
	p.Reach(inboxtest.DuringEffect)
	_, err := fmt.Fprintln(p.effects, event, secondHalf)
	p.Reach(inboxtest.AfterEffect)
	return err
}
