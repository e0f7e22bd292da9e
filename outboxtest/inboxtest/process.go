package inboxtest

// A consumer that is a process of its own, so that it can be killed: the test program in
// another role. What it is to do comes in the environment; where it is, it writes to its
// output, a word a line.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
)

// The points of a delivery at which a consumer can be told to stand still.
const (
	BeforeBegin  = "before begin"
	AfterBegin   = "after begin"
	DuringEffect = "during the effect"
	AfterEffect  = "after the effect"
	AfterFinish  = "after finish"
	BeforeAck    = "before ack"
)

// The words of a consumer that is ready, and of one that has come to the end of a delivery.
const (
	Ready  = "ready"
	Acked  = "ack"
	Nacked = "nack"
)

const (
	roleEnv  = "OUTBOX_INBOX_TEST_ROLE"
	standEnv = "OUTBOX_INBOX_TEST_STAND"
)

// Consumer is a consumer process, seen from inside.
type Consumer struct {
	standAt string
	input   *bufio.Reader
}

// RunIfAsked makes this process a consumer, if Start started it, and then does not return. It
// is the first call of a TestMain.
func RunIfAsked(play func(role []byte, c *Consumer) error) {
	role, asked := os.LookupEnv(roleEnv)
	if !asked {
		return
	}
	c := &Consumer{standAt: os.Getenv(standEnv), input: bufio.NewReader(os.Stdin)}
	if err := play([]byte(role), c); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Say writes a word.
func (c *Consumer) Say(words ...any) { fmt.Println(words...) }

// Reach stands still at the point that was ordered, until a line comes.
func (c *Consumer) Reach(point string) {
	if point != c.standAt {
		return
	}
	c.Say(point)
	if _, err := c.input.ReadString('\n'); err != nil {
		os.Exit(0) // the parent is gone
	}
}

// Consume delivers the events that come on the input, an id a line, until it ends. It ends
// with the parent, too, so that no process is left behind.
func (c *Consumer) Consume(deliver func(event uuid.UUID) error) error {
	c.Say(Ready)
	for {
		line, err := c.input.ReadString('\n')
		if err != nil {
			return err
		}
		event, err := uuid.Parse(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		c.Reach(BeforeBegin)
		err = deliver(event)
		c.Reach(AfterFinish)
		if err != nil {
			c.Say(Nacked, event)
			fmt.Fprintln(os.Stderr, "consumer: nack:", err)
			continue
		}
		c.Reach(BeforeAck)
		c.Say(Acked, event)
	}
}

// AwaitParent returns when the parent is gone.
func (c *Consumer) AwaitParent() { _, _ = io.Copy(io.Discard, c.input) }
