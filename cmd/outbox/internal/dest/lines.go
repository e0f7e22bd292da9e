package dest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// lines writes messages as JSON Lines. A message counts as published when its line has
// left this process and, for a file, is on disk.
type lines struct {
	out io.Writer // a file, or standard output
	// turn is taken by whoever uses the output. A disk, or who reads our output, may hang: then it
	// is not given back, and nobody waits for it longer than his context.
	turn   chan struct{}
	buffer bytes.Buffer
}

func newLines(out io.Writer) *lines { return &lines{out: out, turn: make(chan struct{}, 1)} }

// open opens the file now, and not with the first line.
func (l *lines) open() error {
	if out, ok := l.out.(*file); ok {
		return out.open()
	}
	return nil
}

// Publish writes the batch with one write. If that fails, nothing of it is left in a file.
func (l *lines) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	if !l.take(ctx) {
		for i := range errs {
			errs[i] = outbox.ErrNotAttempted
		}
		return errs
	}
	l.buffer.Reset()
	failed := make(map[string]bool) // by key
	for i := range messages {
		m := &messages[i]
		if failed[m.Key] {
			errs[i] = outbox.ErrNotAttempted
			continue
		}
		if err := appendLine(&l.buffer, m); err != nil {
			errs[i] = outbox.Terminal(err)
			if m.Key != "" {
				failed[m.Key] = true
			}
		}
	}
	if err := l.use(ctx, l.write); err != nil {
		// A full disk or a closed pipe says nothing about the messages.
		for i := range errs {
			if errs[i] == nil {
				errs[i] = unavailable(err)
			}
		}
	}
	return errs
}

// take waits for the turn; it reports false when ctx ended first.
func (l *lines) take(ctx context.Context) bool {
	select {
	case l.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// use uses the output, with the turn taken, and gives it back. If ctx ends first it returns.
func (l *lines) use(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() {
		err := do()
		<-l.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return hangs(ctx)
	}
}

// hangs is a destination that does not come to an end.
func hangs(ctx context.Context) error {
	return outbox.Unavailable(fmt.Errorf("write the events: the disk, or who reads the output, hangs: %w", ctx.Err()))
}

// unavailable marks an error as the file's, unless it says more itself.
func unavailable(err error) error {
	if outbox.Classify(err) == outbox.ClassUnavailable {
		return err
	}
	return outbox.Unavailable(err)
}

// KeepsOrder is true: lines are written in order, and none of a key after one that failed.
func (l *lines) KeepsOrder() bool { return true }

func (l *lines) write() error {
	if _, err := l.out.Write(l.buffer.Bytes()); err != nil {
		return fmt.Errorf("write the events: %w", err)
	}
	return nil
}

// Ping asks whether there is a file to be written to, and whether the last write came to an end.
func (l *lines) Ping(ctx context.Context) error {
	if !l.take(ctx) {
		return hangs(ctx)
	}
	out, ok := l.out.(*file)
	if !ok {
		<-l.turn
		return nil
	}
	return l.use(ctx, out.follow)
}

// closeWait is how long a write that nobody waits for any more may take to come to an end.
const closeWait = 5 * time.Second

// Close closes the file. It does not wait for ever for a write that hangs.
func (l *lines) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if !l.take(ctx) {
		return errors.New("close the destination: a write hangs")
	}
	defer func() { <-l.turn }()
	if out, ok := l.out.(*file); ok {
		return out.Close()
	}
	return nil
}

// line is a message without its payload, in the order in which it is written.
type line struct {
	ID            uuid.UUID         `json:"id"`
	Namespace     string            `json:"namespace"`
	Topic         string            `json:"topic"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregateType"`
	AggregateID   string            `json:"aggregateId"`
	TenantID      *uuid.UUID        `json:"tenantId"`
	DedupeKey     string            `json:"dedupeKey"`
	Key           string            `json:"key"`
	CreatedAt     time.Time         `json:"createdAt"`
	Attempt       int               `json:"attempt"`
	Headers       map[string]string `json:"headers"`
	ContentType   string            `json:"contentType"`
}

// appendLine writes one message. The payload is put in as it is: encoding it as a field
// would change its spelling.
func appendLine(out *bytes.Buffer, m *outbox.Message) error {
	l := line{
		ID: m.ID, Namespace: m.Namespace, Topic: m.Topic, Type: m.Type,
		AggregateType: m.AggregateType, AggregateID: m.AggregateID, DedupeKey: m.DedupeKey, Key: m.Key,
		CreatedAt: m.CreatedAt, Attempt: m.Attempt, Headers: m.Headers, ContentType: m.ContentType,
	}
	if m.TenantID != uuid.Nil {
		l.TenantID = &m.TenantID
	}
	if l.Headers == nil {
		l.Headers = map[string]string{}
	}
	doc, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the event as JSON: %w", err)
	}
	out.Write(doc[:len(doc)-1])
	if json.Valid(m.Payload) && !bytes.ContainsAny(m.Payload, "\r\n") {
		out.WriteString(`,"payload":`)
		out.Write(m.Payload)
	} else {
		// Not JSON, or JSON over several lines, which would not be JSON Lines.
		out.WriteString(`,"payloadBase64":"`)
		out.WriteString(base64.StdEncoding.EncodeToString(m.Payload))
		out.WriteByte('"')
	}
	out.WriteString("}\n")
	return nil
}
