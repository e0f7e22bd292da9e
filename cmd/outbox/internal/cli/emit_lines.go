package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/packfinderz/outbox"
)

// maxLine bounds one line of input, so that input without line breaks does not fill the memory. It leaves room for
// the largest payload, escaped.
const maxLine = 512 << 20

type line struct {
	ID            string            `json:"id"`
	Namespace     string            `json:"namespace"`
	Topic         string            `json:"topic"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregateType"`
	AggregateID   string            `json:"aggregateId"`
	TenantID      string            `json:"tenantId"`
	DedupeKey     string            `json:"dedupeKey"`
	Key           string            `json:"key"`
	Headers       map[string]string `json:"headers"`
	ContentType   string            `json:"contentType"`
	NotBefore     time.Time         `json:"notBefore"`
	MaxAttempts   int               `json:"maxAttempts"`
	Payload       json.RawMessage   `json:"payload"`
	PayloadBase64 []byte            `json:"payloadBase64"`
}

type lines struct {
	scanner *bufio.Scanner
	read    int
	// numbers are the line numbers of the events read; blank lines are skipped.
	numbers []int
}

func newLines(in io.Reader) *lines {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	return &lines{scanner: scanner}
}

func (l *lines) place(n int) string { return fmt.Sprintf("line %d", l.numbers[n]) }

func (l *lines) next() (outbox.Event, error) {
	for l.scanner.Scan() {
		l.read++
		if text := bytes.TrimSpace(l.scanner.Bytes()); len(text) > 0 {
			event, err := parseLine(text)
			if err != nil {
				return outbox.Event{}, usagef("line %d: %w; nothing was written", l.read, err)
			}
			l.numbers = append(l.numbers, l.read)
			return event, nil
		}
	}
	if err := l.scanner.Err(); err != nil {
		return outbox.Event{}, usagef("read line %d: %w; nothing was written", l.read+1, err)
	}
	return outbox.Event{}, io.EOF
}

func parseLine(text []byte) (outbox.Event, error) {
	var parsed line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&parsed); err != nil {
		return outbox.Event{}, fmt.Errorf("not an event: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return outbox.Event{}, errors.New("more than one value; put each event on a line of its own")
	}
	if parsed.Payload != nil && parsed.PayloadBase64 != nil {
		return outbox.Event{}, errors.New("has both payload and payloadBase64; give one")
	}
	event := outbox.Event{
		Namespace: parsed.Namespace, Topic: parsed.Topic, Type: parsed.Type,
		AggregateType: parsed.AggregateType, AggregateID: parsed.AggregateID,
		DedupeKey: parsed.DedupeKey, Key: parsed.Key, Headers: parsed.Headers, ContentType: parsed.ContentType,
		NotBefore: parsed.NotBefore, MaxAttempts: parsed.MaxAttempts, Payload: parsed.Payload,
	}
	if parsed.PayloadBase64 != nil {
		event.Payload = parsed.PayloadBase64
	}
	var err error
	if event.ID, err = parseUUID(parsed.ID); err != nil {
		return outbox.Event{}, fmt.Errorf("id: %w", err)
	}
	if event.TenantID, err = parseUUID(parsed.TenantID); err != nil {
		return outbox.Event{}, fmt.Errorf("tenantId: %w", err)
	}
	return event, nil
}
