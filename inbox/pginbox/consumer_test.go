package pginbox_test

// A consumer that is a process of its own, so that it can be killed: the test program in
// another role. What it is to do comes in the environment; where it is, it writes to its
// output, a word a line.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const consumerEnv = "OUTBOX_PGINBOX_TEST_CONSUMER"

// The points of a delivery at which a consumer can be told to stand still.
const (
	beforeBegin  = "before begin"
	afterBegin   = "after begin"
	duringEffect = "during the effect"
	afterEffect  = "after the effect"
	afterFinish  = "after finish"
	beforeAck    = "before ack"
)

// The words of a consumer that has come to the end of a delivery.
const (
	acked  = "ack"
	nacked = "nack"
)

// order is what a consumer process is to do.
type order struct {
	URL  string
	Door string
	// StandAt is the point at which it waits for a line on its input.
	StandAt string
	// Fault breaks the rules: see fault_test.go.
	Fault string
	// Races is how many goroutines are to handle each event at once; 0 for one, once.
	Races int
}

// runConsumerIfAsked makes this process a consumer. It then does not return.
func runConsumerIfAsked() {
	role := os.Getenv(consumerEnv)
	if role == "" {
		return
	}
	if err := consume(role); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// consume handles the events that come on the input, an id a line, until it ends. It ends
// with the parent, too, so that no process is left behind.
func consume(role string) error {
	var c process
	if err := json.Unmarshal([]byte(role), &c.order); err != nil {
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
	c.input = bufio.NewReader(os.Stdin)
	for {
		line, err := c.input.ReadString('\n')
		if err != nil {
			return err
		}
		event, err := uuid.Parse(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		if err := c.deliver(ctx, event); err != nil {
			fmt.Println(nacked, event)
			fmt.Fprintln(os.Stderr, "consumer: nack:", err)
			continue
		}
		c.reach(beforeAck)
		fmt.Println(acked, event)
	}
}

// process is a consumer, seen from inside.
type process struct {
	order order
	door  *door
	input *bufio.Reader
}

// reach stands still at the point that was ordered, until a line comes.
func (c *process) reach(point string) {
	if point != c.order.StandAt {
		return
	}
	fmt.Println(point)
	if _, err := c.input.ReadString('\n'); err != nil {
		os.Exit(0) // the parent is gone
	}
}

func (c *process) deliver(ctx context.Context, event uuid.UUID) (err error) {
	c.reach(beforeBegin)
	switch {
	case c.order.Races > 0:
		err = c.race(ctx, event)
	case c.order.Fault != "":
		err = c.deliverWrongly(ctx, event)
	default:
		_, err = c.door.deliver(ctx, event, func(ctx context.Context, exec execute) error { return c.work(ctx, exec, event) })
	}
	c.reach(afterFinish)
	return err
}

func (c *process) work(ctx context.Context, exec execute, event uuid.UUID) error {
	c.reach(afterBegin)
	err := effectWith(ctx, exec, event, func() { c.reach(duringEffect) })
	c.reach(afterEffect)
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

// running is a consumer process, seen from outside.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	words *bufio.Reader
}

// start starts a consumer process. It does not outlive the test.
func (b *bench) start(o order) *running {
	b.t.Helper()
	if o.URL == "" {
		o.URL = b.url
	}
	role, err := json.Marshal(o)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), consumerEnv+"="+string(role))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	input, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	r := &running{t: b.t, cmd: cmd, input: input, words: bufio.NewReader(output)}
	b.t.Cleanup(func() {
		r.kill()
		if b.t.Failed() && problems.Len() > 0 {
			b.t.Log(problems.String())
		}
	})
	return r
}

// send delivers an event, or wakes a consumer that stands still.
func (r *running) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.input, line+"\n"); err != nil {
		r.t.Fatalf("writing to the consumer: %v", err)
	}
}

// await fails unless this is the consumer's next word.
func (r *running) await(word string) {
	r.t.Helper()
	line, err := r.words.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != word {
		r.t.Fatalf("the consumer wrote %q, %v; want %q", line, err, word)
	}
}

// kill is kill -9, and reaps the process.
func (r *running) kill() {
	_ = r.cmd.Process.Kill() // fails only when it has ended
	_ = r.cmd.Wait()
}
