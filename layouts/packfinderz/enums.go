package packfinderz

import (
	"maps"
	"slices"

	"github.com/packfinderz/outbox"
)

// EventType is a value of event_type_enum.
type EventType string

// The event types of the contract: the core, the optional ones, and those of ads.
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

// EventTypes are the values of event_type_enum, in the order of the contract.
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

// The aggregate types of the contract.
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

// AggregateTypes are the values of aggregate_type_enum, in the order of the contract.
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

// Reasons are the values of outbox_dlq_reason_enum: every reason for which the relay, or the
// registry before it, gives an event up.
func Reasons() []outbox.Reason {
	return inOrder(
		//exhaustive:enforce
		map[outbox.Reason]int{
			outbox.ReasonMaxAttempts:      1,
			outbox.ReasonUnknownType:      2,
			outbox.ReasonInvalidPayload:   3,
			outbox.ReasonInvalidAggregate: 4,
			outbox.ReasonTooLarge:         5,
			outbox.ReasonRejected:         6,
			outbox.ReasonTerminal:         7,
			outbox.ReasonInvalidRow:       8,
		})
}

// inOrder are the values of an enum by their places in the database. They are written as a map so that the linter finds a
// value that was forgotten.
func inOrder[T ~string](places map[T]int) []T {
	return slices.SortedFunc(maps.Keys(places), func(a, b T) int { return places[a] - places[b] })
}

// names are the values as a layout has them.
func names[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	return names
}
