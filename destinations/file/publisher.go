// Package file publishes events as JSON Lines, to a file or any writer.
package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/packfinderz/outbox"
)

var (
	_ outbox.Pinger    = (*Publisher)(nil)
	_ outbox.Sequencer = (*Publisher)(nil)
)

// Publisher writes each message as one line of JSON. A message is published when its line is written and, for a file,
// on disk. It is safe for concurrent use.
type Publisher struct {
	out io.Writer // a disk, or any other writer
	// turn is held by the user of the output. If a disk or a reader hangs, the turn is not returned, and others
	// wait for it only until their context ends.
	turn   chan struct{}
	buffer bytes.Buffer
}

// New returns a publisher to a file, which is opened at its first use.
func New(config Config) (*Publisher, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	return NewWriter(&disk{config: config}), nil
}

// NewWriter returns a publisher to a writer, such as os.Stdout. Close does not close the writer.
func NewWriter(out io.Writer) *Publisher {
	return &Publisher{out: out, turn: make(chan struct{}, 1)}
}

// Open opens the file before the first message, to learn now whether it can be written.
func (p *Publisher) Open() error {
	if out, ok := p.out.(*disk); ok {
		return out.open()
	}
	return nil
}

// Publish writes the batch with one write. If that fails, nothing of it is left in a file.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	if !p.take(ctx) {
		return slices.Repeat([]error{outbox.ErrNotAttempted}, len(messages))
	}
	errs := make([]error, len(messages))
	p.buffer.Reset()
	failed := make(map[string]bool) // by key
	for i := range messages {
		m := &messages[i]
		if failed[m.Key] {
			errs[i] = outbox.ErrNotAttempted
			continue
		}
		if err := appendLine(&p.buffer, m); err != nil {
			errs[i] = outbox.Terminal(err)
			if m.Key != "" {
				failed[m.Key] = true
			}
		}
	}
	if err := p.use(ctx, p.write); err != nil {
		// A full disk or a closed pipe says nothing about the messages.
		for i := range errs {
			if errs[i] == nil {
				errs[i] = unavailable(err)
			}
		}
	}
	return errs
}

// take waits for the turn; it returns false if ctx ended first.
func (p *Publisher) take(ctx context.Context) bool {
	select {
	case p.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// use uses the output while it holds the turn, and returns the turn. If ctx ends first it returns early.
func (p *Publisher) use(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() {
		err := do()
		<-p.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return hangs(ctx)
	}
}

// KeepsOrder returns true: lines are written in order, and none of a key after a failed one.
func (p *Publisher) KeepsOrder() bool { return true }

func (p *Publisher) write() error {
	if _, err := p.out.Write(p.buffer.Bytes()); err != nil {
		return fmt.Errorf("write the events: %w", err)
	}
	return nil
}

// closeWait is how long Close waits for a hanging write.
const closeWait = 5 * time.Second

// Close closes the file. It does not wait forever for a hanging write.
func (p *Publisher) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if !p.take(ctx) {
		return errors.New("close the destination: a write hangs")
	}
	defer func() { <-p.turn }()
	if out, ok := p.out.(*disk); ok {
		return out.Close()
	}
	return nil
}
