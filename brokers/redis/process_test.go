package redis_test

// A consumer that is a process of its own, so that it can be killed: the test program in
// another role. What it is to do comes in the environment; where it is, it writes to its
// output, a word a line. Its effects are lines in a file.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/brokers/redis"
	"github.com/packfinderz/outbox/inbox"
)

const roleEnv = "OUTBOX_REDIS_TEST_ROLE"

// The points of a delivery at which a consumer can be told to stand still.
const (
	beforeBegin  = "before begin"
	afterBegin   = "after begin"
	duringEffect = "during the effect"
	afterEffect  = "after the effect"
	afterFinish  = "after finish"
	beforeAck    = "before ack"
)

// The words of a consumer that is ready, and of one that has come to the end of a delivery.
const (
	ready = "ready"
	acked = "ack"
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
	// StandAt is the point at which it waits for a line on its input.
	StandAt string
	// MarkBefore breaks the rule: the mark first, and then the effect.
	MarkBefore bool
	// Races is how many goroutines are to handle each event at once; 0 for one.
	Races int
	// Stream has it take its events from the stream; see consumer_kill_test.go.
	Stream bool
}

// runConsumerIfAsked makes this process a consumer. It then does not return.
func runConsumerIfAsked() {
	text := os.Getenv(roleEnv)
	if text == "" {
		return
	}
	if err := play(text); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(text string) error {
	p := process{input: bufio.NewReader(os.Stdin)}
	if err := json.Unmarshal([]byte(text), &p.role); err != nil {
		return err
	}
	config, err := redis.ParseURL(p.role.URL)
	if err != nil {
		return err
	}
	p.inbox, err = redis.NewInbox(redis.InboxConfig{Config: config, TTL: inbox.TTL{Processing: time.Second}})
	if err != nil {
		return err
	}
	if p.effects, err = os.OpenFile(p.role.Effects, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return err
	}
	if p.role.Stream {
		return p.consumeStream(config)
	}
	return p.consume()
}

// process is a consumer, seen from inside.
type process struct {
	role    role
	inbox   *redis.Inbox
	effects *os.File
	input   *bufio.Reader
}

// consume handles the events that come on the input, an id a line, until it ends. It ends
// with the parent, too, so that no process is left behind.
func (p *process) consume() error {
	fmt.Println(ready)
	for {
		line, err := p.input.ReadString('\n')
		if err != nil {
			return err
		}
		event, err := uuid.Parse(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		if err := p.deliver(event); err != nil {
			return err
		}
		p.reach(beforeAck)
		fmt.Println(acked, event)
	}
}

// reach stands still at the point that was ordered, until a line comes.
func (p *process) reach(point string) {
	if point != p.role.StandAt {
		return
	}
	fmt.Println(point)
	if _, err := p.input.ReadString('\n'); err != nil {
		os.Exit(0) // the parent is gone
	}
}

func (p *process) deliver(event uuid.UUID) error {
	p.reach(beforeBegin)
	errs := make([]error, max(p.role.Races, 1))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = p.handle(event) })
	}
	wg.Wait()
	p.reach(afterFinish)
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
	p.reach(afterBegin)
	if _, err := fmt.Fprintln(p.effects, event, firstHalf); err != nil {
		return err
	}
	p.reach(duringEffect)
	_, err := fmt.Fprintln(p.effects, event, secondHalf)
	p.reach(afterEffect)
	return err
}
