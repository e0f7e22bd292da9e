package packfinderz

import (
	"maps"
	"slices"

	"github.com/packfinderz/outbox"
)

// eventTypes returns the values of event_type_enum, in the contract's order.
func eventTypes() []string {
	return []string{
		"order_created",
		"order_state_changed",
		"line_item_state_changed",
		"license_status_changed",
		"media_uploaded",
		"payment_settled",
		"cash_collected",
		"vendor_payout_recorded",
		"notification_requested",
		"order_expired",
		"order_canceled",
		"reservation_released",
		"ad_created",
		"ad_updated",
		"ad_paused",
		"ad_activated",
		"ad_expired",
		"ad_daily_rollup_ready",
	}
}

// aggregateTypes returns the values of aggregate_type_enum, in the contract's order.
func aggregateTypes() []string {
	return []string{
		"vendor_order",
		"checkout_group",
		"license",
		"store",
		"media",
		"ledger_event",
		"notification",
		"ad",
	}
}

// Reasons returns the values of outbox_dlq_reason_enum: every reason for which an event is dead.
func Reasons() []outbox.Reason {
	// The linter finds a value that was forgotten in a map only.
	//exhaustive:enforce
	places := map[outbox.Reason]int{
		outbox.ReasonMaxAttempts:      1,
		outbox.ReasonUnknownType:      2,
		outbox.ReasonInvalidPayload:   3,
		outbox.ReasonInvalidAggregate: 4,
		outbox.ReasonTooLarge:         5,
		outbox.ReasonRejected:         6,
		outbox.ReasonTerminal:         7,
		outbox.ReasonInvalidRow:       8,
	}
	return slices.SortedFunc(maps.Keys(places), func(a, b outbox.Reason) int { return places[a] - places[b] })
}

func names[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	return names
}
