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

// Class is who is at fault for a failed publish.
type Class int

// The classes of failures.
const (
	// ClassRetryable means that the destination refused this message and may take it later:
	// the attempt is counted.
	ClassRetryable Class = iota
	// ClassTerminal means that this message can never succeed: it is dead at once.
	ClassTerminal
	// ClassUnavailable means that the route takes nothing. It says nothing about the message:
	// no attempt is counted, and the route is closed until it answers again.
	ClassUnavailable
	// ClassUnclear means that it may be either. It is held against the route until another
	// message gets through.
	ClassUnclear
)

// String is the class in one word.
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

// Classify decides what a publish error means. It is the one place that does.
//
// What the publisher said with Terminal, Unavailable or Unclear counts. A connection that could
// not be made or broke, and a disk that takes nothing, are unavailability. Where no answer came
// in time it is unclear who is at fault; the relay finds out. So it is with an error that is a nil
// pointer, or whose methods panic. All other errors are taken as an answer about the message.
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
	// A dial that timed out is a timeout, too: the connection comes first.
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

// isDiskFailure reports whether a disk took nothing: it is full, read-only or defective.
func isDiskFailure(err error) bool {
	return isOneOf(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO)
}

// isTimeout reports whether no answer came in time, or nobody waited for it any more.
func isTimeout(err error) bool {
	var timeout net.Error
	return isOneOf(err, context.DeadlineExceeded, context.Canceled) || errors.As(err, &timeout) && timeout.Timeout()
}

// isOneOf is errors.Is for several; an error whose methods panic is none of them.
func isOneOf(err error, kinds ...error) (is bool) {
	defer func() { _ = recover() }() // then it is false
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// ofTopic reports whether an unavailable error is about the message's topic alone.
func ofTopic(err error) bool {
	away := find[*UnavailableError](err)
	return away != nil && away.Topic
}

// mayBeOne reports whether an unavailable error may be the answer to one message, while the
// destination takes others. A full disk, or nobody to connect to, never is.
func mayBeOne(err error) bool { return !isDiskFailure(err) && !isUnreachable(err) }

// mayBePoison reports whether an unavailable error may be one that a message caused: a
// connection that broke. Whoever answers that he takes nothing for now is not broken, and a
// wrong setting is never a message's doing.
func mayBePoison(err error) bool {
	away := find[*UnavailableError](err)
	if away != nil && (away.Setting || away.Topic) {
		return false
	}
	return away != nil && away.Broken || isBroken(err)
}
