package outbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// Class says who is at fault for a failed publish.
type Class int

// The classes of failures.
const (
	// ClassRetryable means that the destination refused this message and may accept it later: the attempt counts.
	ClassRetryable Class = iota
	// ClassTerminal means that this message can never succeed: it is dead at once.
	ClassTerminal
	// ClassUnavailable means that the route accepts nothing. That says nothing about the message: no attempt
	// counts, and the route is closed until it answers again.
	ClassUnavailable
	// ClassUnclear means that either the message or the route may be at fault. The relay holds it against the route
	// until another message gets through.
	ClassUnclear
)

// String returns the class in one word.
func (c Class) String() string {
	switch c {
	case ClassTerminal:
		return "terminal"
	case ClassUnavailable:
		return "unavailable"
	case ClassUnclear:
		return "unclear"
	default:
		return "retryable"
	}
}

// Classify decides what a publish error means. No other code does.
//
// A publisher's Terminal, Unavailable or Unclear decides. A connection that failed or broke, and a disk that cannot
// be written, are unavailable. A timeout is unclear, and the relay finds out who is at fault; so is an error that
// is a nil pointer or whose methods panic. Every other error is the destination's answer to the message: retryable.
func Classify(err error) (class Class) {
	defer func() {
		if recover() != nil {
			class = ClassUnclear
		}
	}()
	switch {
	case isNilPointer(err):
		return ClassUnclear
	case find[*TerminalError](err) != nil:
		return ClassTerminal
	case find[*UnavailableError](err) != nil:
		return ClassUnavailable
	case find[*UnclearError](err) != nil:
		return ClassUnclear
	// A dial that timed out is a timeout, too, so check the connection first.
	case isUnreachable(err), isBroken(err), isDiskFailure(err):
		return ClassUnavailable
	case isTimeout(err):
		return ClassUnclear
	}
	return ClassRetryable
}

// isUnreachable reports whether a connection could not be made.
func isUnreachable(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns) || isTLSFailure(err) || isOneOf(err,
		syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN)
}

func isTLSFailure(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &certificate) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// isBroken reports whether a connection broke.
func isBroken(err error) bool {
	return isOneOf(err, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT)
}

// isDiskFailure reports whether a disk cannot be written: it is full, read-only or defective.
func isDiskFailure(err error) bool {
	return isOneOf(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO)
}

// isTimeout reports whether no answer came in time, or the caller stopped waiting.
func isTimeout(err error) bool {
	var timeout net.Error
	return isOneOf(err, context.DeadlineExceeded, context.Canceled) || errors.As(err, &timeout) && timeout.Timeout()
}

// isOneOf is errors.Is for several targets. An error whose methods panic matches none.
func isOneOf(err error, kinds ...error) (is bool) {
	defer func() { _ = recover() }() // then it is false
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// ofTopic reports whether an unavailable error concerns the message's topic only.
func ofTopic(err error) bool {
	away := find[*UnavailableError](err)
	return away != nil && away.Topic
}

// mayBeOne reports whether an unavailable error may concern one message while the destination accepts others. A
// full disk or a failed dial never does.
func mayBeOne(err error) bool { return !isDiskFailure(err) && !isUnreachable(err) }

// mayBePoison reports whether a message may have caused an unavailable error, which is so if the connection broke.
// A destination that answers "not now" is not broken, and no message causes a wrong setting.
func mayBePoison(err error) bool {
	away := find[*UnavailableError](err)
	if away != nil && (away.Setting || away.Topic) {
		return false
	}
	return away != nil && away.Broken || isBroken(err)
}
