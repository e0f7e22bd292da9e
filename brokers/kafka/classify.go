package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
)

// unreachableError is a cluster, or a part of it, that cannot be reached.
type unreachableError struct{ err error }

func (e unreachableError) Error() string { return e.err.Error() }
func (e unreachableError) Unwrap() error { return e.err }

// isRefusal reports whether a record batch was refused for what is in it.
func isRefusal(err error) bool {
	return isAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp)
}

// classify says what a failure means: Rejected, Unavailable, or try again.
func (p *Publisher) classify(err error, topic string) error {
	if err == nil {
		return nil
	}
	told := fmt.Errorf("publish to %s: %w", topic, err)
	var unreachable unreachableError
	var first *kgo.ErrFirstReadEOF
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	var network *net.OpError // a dial, a read or write, or the other side's word against TLS
	switch {
	case errors.As(err, &unreachable):
		return outbox.Unavailable(told)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("publish to %s: no acknowledgement: %w", topic, err)
	case isRefusal(err), errors.Is(err, kerr.InvalidTopicException):
		return outbox.Rejected(told)
	case isAny(err, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID):
		p.forget(topic)
		return fmt.Errorf("%w; create the topic, or let the relay do it with ?create=true", told)
	case isAny(err, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.ClusterAuthorizationFailed, kerr.BrokerNotAvailable, kerr.NetworkException):
		return outbox.Unavailable(told)
	case errors.Is(err, kgo.ErrClientClosed), errors.Is(err, io.EOF),
		errors.As(err, &first), errors.As(err, &certificate), errors.As(err, &noTLS), errors.As(err, &network),
		kgo.IsRetryableBrokerErr(err), outbox.Classify(err) == outbox.ClassUnavailable:
		return outbox.Unavailable(told)
	}
	// A topic that may not be written to, too few replicas, a quota, a leader to be elected.
	return told
}

func isAny(err error, kinds ...*kerr.Error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
