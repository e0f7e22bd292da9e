// Package enums names the values of the outbox's three enum types for the rest of the backend. The
// values themselves are written in one place, beside the migrations that put them into the database.
package enums

import (
	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/packfinderz"
)

// EventType is a value of event_type_enum.
type EventType = packfinderz.EventType

// The event types: the core, the optional ones, and those of ads.
const (
	OrderCreated          = packfinderz.OrderCreated
	OrderStateChanged     = packfinderz.OrderStateChanged
	LineItemStateChanged  = packfinderz.LineItemStateChanged
	LicenseStatusChanged  = packfinderz.LicenseStatusChanged
	MediaUploaded         = packfinderz.MediaUploaded
	PaymentSettled        = packfinderz.PaymentSettled
	CashCollected         = packfinderz.CashCollected
	VendorPayoutRecorded  = packfinderz.VendorPayoutRecorded
	NotificationRequested = packfinderz.NotificationRequested

	OrderExpired        = packfinderz.OrderExpired
	OrderCanceled       = packfinderz.OrderCanceled
	ReservationReleased = packfinderz.ReservationReleased

	AdCreated          = packfinderz.AdCreated
	AdUpdated          = packfinderz.AdUpdated
	AdPaused           = packfinderz.AdPaused
	AdActivated        = packfinderz.AdActivated
	AdExpired          = packfinderz.AdExpired
	AdDailyRollupReady = packfinderz.AdDailyRollupReady
)

// EventTypes are all event types, in the order of the database.
func EventTypes() []EventType { return packfinderz.EventTypes() }

// AggregateType is a value of aggregate_type_enum.
type AggregateType = packfinderz.AggregateType

// The aggregate types.
const (
	AggregateVendorOrder   = packfinderz.AggregateVendorOrder
	AggregateCheckoutGroup = packfinderz.AggregateCheckoutGroup
	AggregateLicense       = packfinderz.AggregateLicense
	AggregateStore         = packfinderz.AggregateStore
	AggregateMedia         = packfinderz.AggregateMedia
	AggregateLedgerEvent   = packfinderz.AggregateLedgerEvent
	AggregateNotification  = packfinderz.AggregateNotification
	AggregateAd            = packfinderz.AggregateAd
)

// AggregateTypes are all aggregate types, in the order of the database.
func AggregateTypes() []AggregateType { return packfinderz.AggregateTypes() }

// ErrorReason is a value of outbox_dlq_reason_enum: why an event is dead.
type ErrorReason = outbox.Reason

// The reasons for which an event is dead.
const (
	ReasonMaxAttempts      = outbox.ReasonMaxAttempts
	ReasonUnknownEventType = outbox.ReasonUnknownType
	ReasonInvalidPayload   = outbox.ReasonInvalidPayload
	ReasonInvalidAggregate = outbox.ReasonInvalidAggregate
	ReasonPayloadTooLarge  = outbox.ReasonTooLarge
	ReasonRejected         = outbox.ReasonRejected
	ReasonTerminal         = outbox.ReasonTerminal
	ReasonInvalidRow       = outbox.ReasonInvalidRow
)

// ErrorReasons are all reasons, in the order of the database.
func ErrorReasons() []ErrorReason { return packfinderz.Reasons() }
