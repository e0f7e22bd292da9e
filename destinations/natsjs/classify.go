package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// The server's error codes that mean something else than "who knows".
const (
	codeAccountResources = 10002
	codeUnavailable      = 10008 // JetStream is temporarily unavailable
	codeNoLeader         = 10009
	codeResources        = 10023
	codeMemory           = 10028
	codeNotForAccount    = 10039
	codeStorage          = 10047
	codeMessageTooBig    = 10054
	codeOtherStream      = 10060
	codeNotEnabled       = 10076
	codeStoreFailed      = 10077 // for one: the stream is at its limits and discards what is new
	codeHeaderTooLarge   = 10097
	codeSealed           = 10109
	codeOffline          = 10118
	codeInProcess        = 10158 // the same message is still being stored
	codeTooMany          = 10167
	codeOfflineReason    = 10194
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

// isTooLarge reports whether the server will never take the message.
func (e *apiError) isTooLarge() bool {
	return e.ErrCode == codeMessageTooBig || e.ErrCode == codeHeaderTooLarge ||
		e.ErrCode == codeStoreFailed && (strings.Contains(e.Description, "message too large") || strings.Contains(e.Description, "message to large"))
}

// disconnectedError is a connection that was lost before the answer came.
type disconnectedError struct{ error }

func (e disconnectedError) Unwrap() error { return e.error }

// unreadableError is a user who may not read acknowledgements.
type unreadableError struct{ err error }

func (e unreadableError) Error() string {
	return "acknowledgements cannot be read: " + e.err.Error() + "; allow this user to subscribe to _INBOX.>"
}
func (e unreadableError) Unwrap() error { return e.err }

// deniedError is a subject that the user may not publish to.
type deniedError struct{ error }

func (e deniedError) Unwrap() error { return e.error }

// behindError is a message that timed out while others to its subject were answered. A stream answers each message,
// so this one was lost on the way, or the stream is slow.
type behindError struct{ err error }

func (e behindError) Error() string {
	return "no acknowledgement, while others came: " + e.err.Error()
}
func (e behindError) Unwrap() error { return e.err }

// errUnknownStream means that no stream has the subject.
var errUnknownStream = errors.New("no stream has this subject; create one, or let the relay do it with ?create=true")

// uncreatedError is a stream that the server refuses to create.
type uncreatedError struct {
	error
	code int
}

func (e uncreatedError) Unwrap() error { return e.error }

// leaderlessError is a stream that accepts nothing until it has elected a leader.
type leaderlessError struct{ stream string }

func (e leaderlessError) Error() string { return fmt.Sprintf("stream %q has no leader now", e.stream) }

// errNoJetStream is a server that answers, but keeps no streams.
var errNoJetStream = errors.New("JetStream does not answer; is it enabled on the server, and for this account?")

// failure returns why a message was not acknowledged; nil if it was.
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

// classify marks a failure. A message that the server refuses for its size is Rejected, an unknown error is
// Unclear; everything else says nothing about the message.
func classify(err error, subject string) error {
	told := fmt.Errorf("publish to %s: %w", subject, err)
	api, isAPI := errors.AsType[*apiError](err)
	uncreated, isUncreated := errors.AsType[uncreatedError](err)
	switch {
	case err == nil, errors.Is(err, outbox.ErrNotAttempted):
		return err
	case failure.Is[behindError](err), failure.Is[leaderlessError](err):
		return outbox.TopicUnavailable(told)
	case isAway(err):
		return away(told)
	case isOver(err):
		return fmt.Errorf("publish to %s: no acknowledgement: %w", subject, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return outbox.Rejected(told)
	case failure.Is[deniedError](err):
		return outbox.TopicMissing(fmt.Errorf("%w; allow this user to publish to the subject", told))
	case errors.Is(err, errUnknownStream):
		return outbox.TopicMissing(told)
	case isUncreated && isShort(uncreated.code):
		return outbox.TopicUnavailable(told)
	case isUncreated:
		return outbox.TopicMissing(told)
	case isAPI:
		return classifyAnswer(api, told)
	}
	return outbox.Unclear(told)
}

// classifyAnswer is for what JetStream itself said.
func classifyAnswer(api *apiError, told error) error {
	switch {
	case api.isTooLarge():
		return outbox.Rejected(told)
	case isShort(api.ErrCode):
		return outbox.TopicUnavailable(told)
	}
	switch api.ErrCode {
	case codeOtherStream, codeSealed:
		return outbox.TopicMissing(told)
	case codeStoreFailed, codeNoLeader, codeOffline, codeOfflineReason, codeInProcess, codeTooMany:
		return outbox.TopicUnavailable(told)
	}
	return outbox.Unclear(told)
}

// isShort reports whether JetStream lacks memory or disk for a stream.
func isShort(code int) bool {
	return code == codeAccountResources || code == codeResources || code == codeMemory || code == codeStorage
}

// isOver reports whether the caller stopped waiting.
func isOver(err error) bool {
	return failure.IsAny(err, context.DeadlineExceeded, context.Canceled)
}

// isAway reports whether the server accepts nothing from us at all.
func isAway(err error) bool {
	api, isAPI := errors.AsType[*apiError](err)
	return failure.Is[disconnectedError](err) || isSetting(err) || isAPI && api.ErrCode == codeUnavailable ||
		failure.IsAny(err, errNoJetStream, nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrHeadersNotSupported) ||
		!errors.Is(err, nats.ErrNoResponders) && outbox.Classify(err) == outbox.ClassUnavailable // it could not be written
}

// away marks the error of a server that accepts nothing from us: a wrong setting, if the server says so.
func away(err error) error {
	switch {
	case isSetting(err):
		return outbox.Misconfigured(err)
	case failure.Is[disconnectedError](err), errors.Is(err, nats.ErrConnectionClosed):
		return outbox.Broken(err)
	}
	return outbox.Unavailable(err)
}

func isSetting(err error) bool {
	api, isAPI := errors.AsType[*apiError](err)
	return failure.Is[unreadableError](err) || isAPI && (api.ErrCode == codeNotForAccount || api.ErrCode == codeNotEnabled) ||
		failure.IsAny(err, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, fs.ErrNotExist, fs.ErrPermission)
}
