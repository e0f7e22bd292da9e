// Package registry says where each event goes and what it must look like: event type -> topic, aggregate and payload.
// An event type that is not in it is never published.
package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// New returns the route of every event type. Topics has only the names of the topics; which one a type belongs to is
// decided here. A new event type needs a line here, with its topic, aggregate and payload: without one make lint fails,
// and Emit and the publisher refuse the type.
func New(topics Topics) (outbox.Registry, error) {
	if err := topics.check(); err != nil {
		return nil, err
	}
	//exhaustive:enforce
	typed := map[enums.EventType]outbox.Route{
		enums.OrderCreated:         to[payloads.OrderCreated](topics.Domain, enums.AggregateCheckoutGroup),
		enums.OrderStateChanged:    to[payloads.OrderStateChanged](topics.Domain, enums.AggregateVendorOrder),
		enums.LineItemStateChanged: to[payloads.LineItemStateChanged](topics.Domain, enums.AggregateVendorOrder),
		enums.OrderExpired:         to[payloads.OrderExpired](topics.Domain, enums.AggregateVendorOrder),
		enums.OrderCanceled:        to[payloads.OrderCanceled](topics.Domain, enums.AggregateVendorOrder),
		enums.ReservationReleased:  to[payloads.ReservationReleased](topics.Domain, enums.AggregateVendorOrder),
		enums.LicenseStatusChanged: to[payloads.LicenseStatusChanged](topics.Domain, enums.AggregateLicense),
		enums.MediaUploaded:        to[payloads.MediaUploaded](topics.Domain, enums.AggregateMedia),

		enums.PaymentSettled:       to[payloads.PaymentSettled](topics.Billing, enums.AggregateLedgerEvent),
		enums.CashCollected:        to[payloads.CashCollected](topics.Billing, enums.AggregateLedgerEvent),
		enums.VendorPayoutRecorded: to[payloads.VendorPayoutRecorded](topics.Billing, enums.AggregateLedgerEvent),

		enums.NotificationRequested: to[payloads.NotificationRequested](topics.Notifications, enums.AggregateNotification),

		enums.AdCreated:          to[payloads.AdCreated](topics.Analytics, enums.AggregateAd),
		enums.AdUpdated:          to[payloads.AdUpdated](topics.Analytics, enums.AggregateAd),
		enums.AdPaused:           to[payloads.AdPaused](topics.Analytics, enums.AggregateAd),
		enums.AdActivated:        to[payloads.AdActivated](topics.Analytics, enums.AggregateAd),
		enums.AdExpired:          to[payloads.AdExpired](topics.Analytics, enums.AggregateAd),
		enums.AdDailyRollupReady: to[payloads.AdDailyRollupReady](topics.Analytics, enums.AggregateAd),
	}
	registry := make(outbox.Registry, len(typed))
	for eventType, route := range typed {
		registry[string(eventType)] = route
	}
	return registry, nil
}

// to returns the route of events whose data is a P.
func to[P payloads.Payload](topic string, aggregate enums.AggregateType) outbox.Route {
	return outbox.Route{
		Topic: topic, AggregateType: string(aggregate), Check: whole[P],
		Decode: func(stored []byte) error {
			_, _, err := payloads.Open[P](stored)
			return err
		},
	}
}

// whole compares the row with its envelope. The payload was checked before.
func whole[P payloads.Payload](message *outbox.Message) error {
	if message.ID == uuid.Nil {
		return &outbox.TerminalError{Reason: enums.ReasonInvalidRow, Err: errors.New("the event's id is nil: consumers could not tell it from others")}
	}
	envelope, err := packfinderz.OpenEnvelope(message.Payload)
	if err != nil {
		return err
	}
	if envelope.EventID != message.ID.String() {
		return fmt.Errorf("the envelope's eventId is %q, and the event's id is %s", envelope.EventID, message.ID)
	}
	var data P
	if err := json.Unmarshal(envelope.Data, &data); err != nil {
		return err
	}
	if err := aggregateOf(message.AggregateID, data.AggregateID()); err != nil {
		return &outbox.TerminalError{Reason: enums.ReasonInvalidAggregate, Err: err}
	}
	return nil
}

// aggregateOf checks that the row's aggregate id is a UUID, and the one that the data names, if it names one.
func aggregateOf(row string, data uuid.UUID) error {
	const canonical = 36 // characters; uuid.Parse takes others, too
	id, err := uuid.Parse(row)
	switch {
	case err != nil || id == uuid.Nil || len(row) != canonical:
		return fmt.Errorf("the aggregate id %q is not a UUID other than nil", row)
	case data != uuid.Nil && data != id:
		return fmt.Errorf("the aggregate id is %s, and the data is about %s", id, data)
	}
	return nil
}
