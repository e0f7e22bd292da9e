// Package enums has the values of the outbox's three enum types. Event types and aggregate types are the backend's own.
// A new value needs a migration that adds it to the database; an event type also needs its payload and its line in the
// registry.
package enums

import (
	"maps"
	"slices"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/packfinderz"
)

// EventType is a value of event_type_enum.
type EventType string

// The event types: the core, the optional ones, and those of ads.
const (
	OrderCreated          EventType = "order_created"
	OrderStateChanged     EventType = "order_state_changed"
	LineItemStateChanged  EventType = "line_item_state_changed"
	LicenseStatusChanged  EventType = "license_status_changed"
	MediaUploaded         EventType = "media_uploaded"
	PaymentSettled        EventType = "payment_settled"
	CashCollected         EventType = "cash_collected"
	VendorPayoutRecorded  EventType = "vendor_payout_recorded"
	NotificationRequested EventType = "notification_requested"

	OrderExpired        EventType = "order_expired"
	OrderCanceled       EventType = "order_canceled"
	ReservationReleased EventType = "reservation_released"

	AdCreated          EventType = "ad_created"
	AdUpdated          EventType = "ad_updated"
	AdPaused           EventType = "ad_paused"
	AdActivated        EventType = "ad_activated"
	AdExpired          EventType = "ad_expired"
	AdDailyRollupReady EventType = "ad_daily_rollup_ready"
)

// EventTypes returns the values of event_type_enum, in the order of the database.
func EventTypes() []EventType {
	return inOrder(
		//exhaustive:enforce
		map[EventType]int{
			OrderCreated:          1,
			OrderStateChanged:     2,
			LineItemStateChanged:  3,
			LicenseStatusChanged:  4,
			MediaUploaded:         5,
			PaymentSettled:        6,
			CashCollected:         7,
			VendorPayoutRecorded:  8,
			NotificationRequested: 9,
			OrderExpired:          10,
			OrderCanceled:         11,
			ReservationReleased:   12,
			AdCreated:             13,
			AdUpdated:             14,
			AdPaused:              15,
			AdActivated:           16,
			AdExpired:             17,
			AdDailyRollupReady:    18,
		})
}

// AggregateType is a value of aggregate_type_enum.
type AggregateType string

// The aggregate types.
const (
	AggregateVendorOrder   AggregateType = "vendor_order"
	AggregateCheckoutGroup AggregateType = "checkout_group"
	AggregateLicense       AggregateType = "license"
	AggregateStore         AggregateType = "store"
	AggregateMedia         AggregateType = "media"
	AggregateLedgerEvent   AggregateType = "ledger_event"
	AggregateNotification  AggregateType = "notification"
	AggregateAd            AggregateType = "ad"
)

// AggregateTypes returns the values of aggregate_type_enum, in the order of the database.
func AggregateTypes() []AggregateType {
	return inOrder(
		//exhaustive:enforce
		map[AggregateType]int{
			AggregateVendorOrder:   1,
			AggregateCheckoutGroup: 2,
			AggregateLicense:       3,
			AggregateStore:         4,
			AggregateMedia:         5,
			AggregateLedgerEvent:   6,
			AggregateNotification:  7,
			AggregateAd:            8,
		})
}

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

// ErrorReasons returns all reasons, in the order of the database.
func ErrorReasons() []ErrorReason { return packfinderz.Reasons() }

// inOrder sorts the values of an enum by their places in the database. They are in a map because only there the linter
// finds a forgotten value.
func inOrder[T ~string](places map[T]int) []T {
	return slices.SortedFunc(maps.Keys(places), func(a, b T) int { return places[a] - places[b] })
}
