package pftest

import (
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// Payloads has a valid payload of every event type.
func Payloads() []payloads.Payload {
	var (
		order, store, ledger, ad = uuid.New(), uuid.New(), uuid.New(), uuid.New()
		now                      = time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	)
	return []payloads.Payload{
		payloads.OrderCreated{
			CheckoutGroupID: uuid.New(), BuyerStoreID: store, TotalCents: 4200, Currency: "USD",
			VendorOrders: []payloads.VendorOrder{{VendorOrderID: order, VendorStoreID: uuid.New(), TotalCents: 4200, LineItems: 3}},
		},
		payloads.OrderStateChanged{VendorOrderID: order, From: "pending", To: "accepted"},
		payloads.LineItemStateChanged{VendorOrderID: order, LineItemID: uuid.New(), From: "pending", To: "rejected", Reason: "sold out"},
		payloads.LicenseStatusChanged{LicenseID: uuid.New(), StoreID: store, Status: payloads.LicenseRejected, Reason: "unreadable"},
		payloads.MediaUploaded{
			MediaID: uuid.New(), StoreID: store, Kind: "license", MIMEType: "application/pdf", ObjectKey: "licenses/1.pdf", SizeBytes: 1,
		},
		payloads.PaymentSettled{LedgerEventID: ledger, VendorOrderID: order, AmountCents: 4200, Currency: "USD", Method: "ach", SettledAt: now},
		payloads.CashCollected{
			LedgerEventID: ledger, VendorOrderID: order, AmountCents: 4200, Currency: "USD", CollectedBy: uuid.New(), CollectedAt: now,
		},
		payloads.VendorPayoutRecorded{LedgerEventID: ledger, VendorStoreID: store, AmountCents: 4000, Currency: "USD", PaidAt: now},
		payloads.NotificationRequested{NotificationID: uuid.New(), StoreID: &store, Channel: payloads.Email, Template: "welcome"},
		payloads.OrderExpired{VendorOrderID: order, ExpiredAt: now},
		payloads.OrderCanceled{VendorOrderID: order, CanceledBy: payloads.Buyer},
		payloads.ReservationReleased{
			VendorOrderID: order, Items: []payloads.ReleasedStock{{LineItemID: uuid.New(), ProductID: uuid.New(), Quantity: 2}},
		},
		payloads.AdCreated{
			AdID: ad, StoreID: store, Placement: "search", DailyBudgetCents: 500, Currency: "USD", StartsAt: now, EndsAt: now.Add(time.Hour),
		},
		payloads.AdUpdated{AdID: ad, StoreID: store, Changed: []string{"endsAt"}},
		payloads.AdPaused{Reason: "budget"},
		payloads.AdActivated{},
		payloads.AdExpired{AdID: ad, StoreID: store, ExpiredAt: now},
		payloads.AdDailyRollupReady{AdID: ad, StoreID: store, Day: "2026-05-31", Impressions: 100, Clicks: 3, SpendCents: 120},
	}
}

// AggregateOf is the aggregate that an event with the payload has: the one that the payload names, or any.
func AggregateOf(payload payloads.Payload) uuid.UUID {
	if own := payload.AggregateID(); own != uuid.Nil {
		return own
	}
	return uuid.New()
}
