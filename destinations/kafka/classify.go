package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// unreachableError is a cluster that cannot be reached. It is partial if other brokers answer: then only some
// partitions are unavailable.
type unreachableError struct {
	error
	partial bool
}

func (e unreachableError) Unwrap() error { return e.error }

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
	unreachable, isUnreachable := errors.AsType[unreachableError](err)
	answer, isRefusal := errors.AsType[*kerr.Error](err)
	switch {
	case err == nil, errors.Is(err, outbox.ErrNotAttempted):
		return err
	case isUnreachable && !unreachable.partial:
		return unreached(told)
	case isUnreachable, failure.Is[behindError](err):
		return outbox.TopicUnavailable(told)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("publish to %s: no acknowledgement: %w", topic, err)
	case failure.IsAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException):
		return outbox.Rejected(told)
	case failure.IsAny(err, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID):
		return outbox.TopicMissing(fmt.Errorf("%w; create the topic, or let the relay do it with ?create=true", told))
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return outbox.TopicMissing(fmt.Errorf("%w; allow this user to write to the topic", told))
	case failure.IsAny(err, kerr.UnsupportedCompressionType, kerr.UnsupportedForMessageFormat):
		return outbox.TopicMissing(fmt.Errorf("%w; change the topic, or choose another compression", told))
	case isSetting(err), isDisconnect(err),
		failure.IsAny(err, kerr.BrokerNotAvailable, kerr.NetworkException, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator):
		return unreached(told)
	case isRefusal && answer.Retriable && answer != kerr.CorruptMessage,
		failure.IsAny(err, kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping),
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
	return failure.IsAny(err, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.ClusterAuthorizationFailed, kerr.UnsupportedVersion)
}

// isDisconnect reports whether a connection could not be made or broke.
func isDisconnect(err error) bool {
	// A net.OpError is a dial, a read or write, or the other side's word against TLS.
	return errors.Is(err, kgo.ErrClientClosed) || failure.Is[*kgo.ErrFirstReadEOF](err) || failure.Is[*net.OpError](err) ||
		kgo.IsRetryableBrokerErr(err) || outbox.Classify(err) == outbox.ClassUnavailable
}

// isAnswer reports whether the cluster itself refused a record batch, for something in it or for all of it.
func isAnswer(err error) bool { return failure.Is[*kerr.Error](err) }

// isDoubt reports whether a record batch may have been stored although it failed. A connection
// that is refused when it is made again says nothing about what was sent on the last one.
func isDoubt(err error) bool {
	return !isAnswer(err) || failure.Is[unreachableError](err) || failure.IsAny(err, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend,
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState)
}
