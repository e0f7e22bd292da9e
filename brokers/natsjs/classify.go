package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
)

// The server's error codes that mean something else than "try this message again".
const (
	codeUnavailable    = 10008 // JetStream is temporarily unavailable
	codeNotForAccount  = 10039
	codeMessageTooBig  = 10054
	codeNotEnabled     = 10076
	codeHeaderTooLarge = 10097
)

// apiError is what JetStream answers instead of an acknowledgement.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s (JetStream error %d)", e.Description, e.ErrCode)
}

// disconnectedError is a connection that was lost before the answer came.
type disconnectedError struct{ err error }

func (e disconnectedError) Error() string { return e.err.Error() }
func (e disconnectedError) Unwrap() error { return e.err }

// deniedError is a subject that the user may not publish to.
type deniedError struct{ err error }

func (e deniedError) Error() string { return e.err.Error() }
func (e deniedError) Unwrap() error { return e.err }

// errUnknownStream is a subject that no stream has.
var errUnknownStream = errors.New("no stream has this subject; create one, or let the relay do it with ?create=true")

// leaderlessError is a stream that cannot take messages until it has elected a leader.
type leaderlessError struct{ stream string }

func (e leaderlessError) Error() string { return fmt.Sprintf("stream %q has no leader now", e.stream) }

// errNoJetStream is a server that answers, but keeps no streams.
var errNoJetStream = errors.New("JetStream does not answer; is it enabled on the server, and for this account?")

// failure is why a message was not acknowledged; nil if it was.
func (a answer) failure() error {
	if a.err != nil {
		return a.err
	}
	var ack struct {
		Stream string    `json:"stream"`
		Error  *apiError `json:"error"`
	}
	if err := json.Unmarshal(a.data, &ack); err != nil {
		return fmt.Errorf("an answer that is no acknowledgement: %w", err)
	}
	if ack.Error != nil {
		return ack.Error
	}
	if ack.Stream == "" {
		return errors.New("an answer that is no acknowledgement: it names no stream")
	}
	return nil
}

// classify says what a failure means: Rejected, Unavailable, or try again.
func classify(err error, subject string) error {
	if err == nil {
		return nil
	}
	var lost disconnectedError
	var api *apiError
	var leaderless leaderlessError
	told := fmt.Errorf("publish to %s: %w", subject, err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("publish to %s: no acknowledgement: %w", subject, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return outbox.Rejected(told)
	case errors.As(err, &api):
		switch api.ErrCode {
		case codeMessageTooBig, codeHeaderTooLarge:
			return outbox.Rejected(told)
		case codeUnavailable, codeNotForAccount, codeNotEnabled:
			return outbox.Unavailable(told)
		}
		return told
	case errors.As(err, &lost), errors.As(err, &leaderless), errors.Is(err, errNoJetStream),
		errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrHeadersNotSupported),
		isWriteFailure(err):
		return outbox.Unavailable(told)
	}
	// A subject without a stream, one that may not be published to, a stream that is full.
	return told
}

// isWriteFailure reports whether a message could not be written to the connection.
func isWriteFailure(err error) bool {
	return !errors.Is(err, nats.ErrNoResponders) && outbox.Classify(err) == outbox.ClassUnavailable
}
