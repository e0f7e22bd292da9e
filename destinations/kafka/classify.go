package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
)

// unreachableError is a cluster that cannot be reached. It is partial if other brokers answer: then only some
// partitions are unavailable.
type unreachableError struct {
	err     error
	partial bool
}

func (e unreachableError) Error() string { return e.err.Error() }
func (e unreachableError) Unwrap() error { return e.err }

// behindError is a message that timed out while others of its topic were answered. A partition handles its messages
// in order, so the partition is slow.
type behindError struct{ err error }

func (e behindError) Error() string {
	return "no acknowledgement, while other partitions answer: " + e.err.Error()
}
func (e behindError) Unwrap() error { return e.err }

// classify marks the error of a failed publish. A message that the cluster refuses for its content is Rejected, an
// unknown server error is Unclear; everything else says nothing about the message.
func classify(err error, topic string) error {
	told := fmt.Errorf("publish to %s: %w", topic, err)
	var unreachable unreachableError
	var behind behindError
	var answer *kerr.Error
	switch {
	case err == nil, errors.Is(err, outbox.ErrNotAttempted):
		return err
	case errors.As(err, &unreachable) && !unreachable.partial:
		return unreached(told)
	case errors.As(err, &unreachable), errors.As(err, &behind):
		return outbox.TopicUnavailable(told)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("publish to %s: no acknowledgement: %w", topic, err)
	case isAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException):
		return outbox.Rejected(told)
	case isAny(err, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID):
		return outbox.TopicMissing(fmt.Errorf("%w; create the topic, or let the relay do it with ?create=true", told))
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return outbox.TopicMissing(fmt.Errorf("%w; allow this user to write to the topic", told))
	case isAny(err, kerr.UnsupportedCompressionType, kerr.UnsupportedForMessageFormat):
		return outbox.TopicMissing(fmt.Errorf("%w; change the topic, or choose another compression", told))
	case isSetting(err), isDisconnect(err),
		isAny(err, kerr.BrokerNotAvailable, kerr.NetworkException, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator):
		return unreached(told)
	case errors.As(err, &answer) && answer.Retriable && answer != kerr.CorruptMessage,
		isAny(err, kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping),
		errors.Is(err, kgo.ErrRecordRetries), errors.Is(err, kgo.ErrRecordTimeout):
		// No leader, too few replicas, a quota, a failed disk.
		return outbox.TopicUnavailable(told)
	}
	return outbox.Unclear(told)
}

// unreached marks the error of a cluster that accepts nothing from us: a wrong setting, if the cluster says so.
func unreached(err error) error {
	switch {
	case isSetting(err):
		return outbox.Misconfigured(err)
	case isDisconnect(err):
		return outbox.Broken(err)
	}
	return outbox.Unavailable(err)
}

func isSetting(err error) bool {
	return isAny(err, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.ClusterAuthorizationFailed, kerr.UnsupportedVersion)
}

// isDisconnect reports whether a connection could not be made or broke.
func isDisconnect(err error) bool {
	var first *kgo.ErrFirstReadEOF
	var network *net.OpError // a dial, a read or write, or the other side's word against TLS
	return errors.Is(err, kgo.ErrClientClosed) || errors.As(err, &first) || errors.As(err, &network) ||
		kgo.IsRetryableBrokerErr(err) || outbox.Classify(err) == outbox.ClassUnavailable
}

// isAnswer reports whether the cluster itself refused a record batch, for something in it or for
// all of it.
func isAnswer(err error) bool {
	var answer *kerr.Error
	return errors.As(err, &answer)
}

// isDoubt reports whether a record batch may have been stored although it failed. A connection
// that is refused when it is made again says nothing about what was sent on the last one.
func isDoubt(err error) bool {
	var unreachable unreachableError
	return !isAnswer(err) || errors.As(err, &unreachable) || isAny(err, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend,
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState)
}

func isAny(err error, kinds ...*kerr.Error) bool {
	return slices.ContainsFunc(kinds, func(kind *kerr.Error) bool { return errors.Is(err, kind) })
}
