package dest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// lines writes messages as JSON Lines. A message counts as published when its line has
// left this process and, for a file, is on disk.
type lines struct {
	mu     sync.Mutex
	out    io.Writer
	file   diskFile // nil for standard output
	buffer bytes.Buffer
}

// diskFile is what is used of an os.File.
type diskFile interface {
	io.WriteSeeker
	io.Closer
	Name() string
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

func newLines(out io.Writer, file diskFile) *lines { return &lines{out: out, file: file} }

// Publish writes the batch with one write. If that fails, nothing of it is left in a file.
func (l *lines) Publish(_ context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	l.mu.Lock()
	defer l.mu.Unlock()
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
	if err := l.write(); err != nil {
		// A full disk or a closed pipe says nothing about the messages.
		for i := range errs {
			errs[i] = outbox.Unavailable(err)
		}
	}
	return errs
}

// KeepsOrder is true: lines are written in order, and none of a key after one that failed.
func (l *lines) KeepsOrder() bool { return true }

func (l *lines) write() error {
	if l.file == nil {
		if _, err := l.out.Write(l.buffer.Bytes()); err != nil {
			return fmt.Errorf("write to standard output: %w", err)
		}
		return nil
	}
	before, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("write to %s: %w", l.file.Name(), err)
	}
	_, err = l.out.Write(l.buffer.Bytes())
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		// Half a line would spoil the next one.
		if truncateErr := l.file.Truncate(before); truncateErr != nil {
			err = fmt.Errorf("%w; and half a line is left: %w", err, truncateErr)
		}
		return fmt.Errorf("write to %s: %w", l.file.Name(), err)
	}
	return nil
}

// Ping asks whether a file is still there to be written to.
func (l *lines) Ping(context.Context) error {
	if l.file == nil {
		return nil
	}
	if _, err := l.file.Stat(); err != nil {
		return fmt.Errorf("look at %s: %w", l.file.Name(), err)
	}
	return nil
}

// Close closes the file.
func (l *lines) Close() error {
	if l.file == nil {
		return nil
	}
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("close the destination: %w", err)
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
