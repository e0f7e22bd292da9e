package packfinderz

import "github.com/packfinderz/outbox"

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
	return []EventType{
		OrderCreated, OrderStateChanged, LineItemStateChanged, LicenseStatusChanged,
		MediaUploaded, PaymentSettled, CashCollected, VendorPayoutRecorded, NotificationRequested,
		OrderExpired, OrderCanceled, ReservationReleased,
		AdCreated, AdUpdated, AdPaused, AdActivated, AdExpired, AdDailyRollupReady,
	}
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
	return []AggregateType{
		AggregateVendorOrder, AggregateCheckoutGroup, AggregateLicense, AggregateStore, AggregateMedia,
		AggregateLedgerEvent, AggregateNotification, AggregateAd,
	}
}

// Reasons are the values of outbox_dlq_reason_enum: every reason for which the relay, or the
// registry before it, gives an event up.
func Reasons() []outbox.Reason {
	return []outbox.Reason{
		outbox.ReasonMaxAttempts, outbox.ReasonUnknownType, outbox.ReasonInvalidPayload, outbox.ReasonInvalidAggregate,
		outbox.ReasonTooLarge, outbox.ReasonRejected, outbox.ReasonTerminal, outbox.ReasonInvalidRow,
	}
}

// names are the values as a layout has them.
func names[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	return names
}
