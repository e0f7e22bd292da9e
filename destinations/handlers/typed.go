package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/packfinderz/outbox"
)

// Handle registers a handler that gets the payload as a T, decoded from JSON. A payload that is null or not a T is
// terminal: a stored event does not change. Fields that T lacks are ignored, so that producers can add some.
func Handle[T any](p *Publisher, eventType, name string, call func(ctx context.Context, payload T, message outbox.Message) error) error {
	if call == nil {
		return p.Register(eventType, name, nil)
	}
	return p.Register(eventType, name, func(ctx context.Context, message outbox.Message) error {
		payload, err := decode[T](message.Payload)
		if err != nil {
			return &outbox.TerminalError{Reason: outbox.ReasonInvalidPayload, Err: err}
		}
		return call(ctx, payload, message)
	})
}

func decode[T any](document []byte) (payload T, err error) {
	if trimmed := bytes.TrimSpace(document); len(trimmed) == 0 || string(trimmed) == "null" {
		return payload, errors.New("the payload is null")
	}
	if err := json.Unmarshal(document, &payload); err != nil {
		return payload, fmt.Errorf("the payload is no %T: %w", payload, err)
	}
	return payload, nil
}
