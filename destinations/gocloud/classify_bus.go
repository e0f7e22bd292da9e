package gocloud

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/packfinderz/outbox"
)

// classifyBus goes by the codes of Azure's client, and by the conditions of AMQP beneath.
func classifyBus(err error) error {
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return outbox.TooLarge(err)
	}
	if bus, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch bus.Code {
		case azservicebus.CodeConnectionLost, azservicebus.CodeClosed:
			return outbox.Unavailable(err)
		case azservicebus.CodeUnauthorizedAccess, azservicebus.CodeNotFound:
			return outbox.TopicMissing(err)
		case azservicebus.CodeTimeout:
			return silence(err)
		}
	}
	switch condition(err) {
	case amqp.ErrCondMessageSizeExceeded:
		return outbox.TooLarge(err)
	case amqp.ErrCondNotFound, amqp.ErrCondUnauthorizedAccess, "com.microsoft:entity-disabled":
		return outbox.TopicMissing(err)
	case amqp.ErrCondResourceLimitExceeded, "com.microsoft:server-busy": // it is full, or throttled
		return outbox.TopicUnavailable(err)
	case amqp.ErrCondConnectionForced, amqp.ErrCondDetachForced:
		return outbox.Unavailable(err)
	case "com.microsoft:timeout", "com.microsoft:operation-cancelled":
		return silence(err)
	}
	return nil
}

// condition is what the service said in AMQP's own words.
func condition(err error) amqp.ErrCond {
	if answer, ok := errors.AsType[*amqp.Error](err); ok {
		return answer.Condition
	}
	if link, ok := errors.AsType[*amqp.LinkError](err); ok && link.RemoteErr != nil {
		return link.RemoteErr.Condition
	}
	return ""
}
