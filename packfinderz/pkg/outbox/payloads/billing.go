package payloads

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// PaymentSettled is a buyer's payment that has arrived.
type PaymentSettled struct {
	LedgerEventID uuid.UUID `json:"ledgerEventId"`
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	AmountCents   int64     `json:"amountCents"`
	Currency      string    `json:"currency"`
	Method        string    `json:"method"`
	SettledAt     time.Time `json:"settledAt"`
}

// EventType is payment_settled.
func (PaymentSettled) EventType() enums.EventType { return enums.PaymentSettled }

// AggregateID is the entry in the ledger.
func (p PaymentSettled) AggregateID() uuid.UUID { return p.LedgerEventID }

// Validate says what is wrong with the data.
func (p PaymentSettled) Validate() error {
	return errors.Join(id("ledgerEventId", p.LedgerEventID), id("vendorOrderId", p.VendorOrderID),
		amount("amountCents", p.AmountCents), currency(p.Currency), text("method", p.Method), moment("settledAt", p.SettledAt))
}

// CashCollected is cash that a driver took at delivery.
type CashCollected struct {
	LedgerEventID uuid.UUID `json:"ledgerEventId"`
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	AmountCents   int64     `json:"amountCents"`
	Currency      string    `json:"currency"`
	CollectedBy   uuid.UUID `json:"collectedBy"`
	CollectedAt   time.Time `json:"collectedAt"`
}

// EventType is cash_collected.
func (CashCollected) EventType() enums.EventType { return enums.CashCollected }

// AggregateID is the entry in the ledger.
func (p CashCollected) AggregateID() uuid.UUID { return p.LedgerEventID }

// Validate says what is wrong with the data.
func (p CashCollected) Validate() error {
	return errors.Join(id("ledgerEventId", p.LedgerEventID), id("vendorOrderId", p.VendorOrderID),
		amount("amountCents", p.AmountCents), currency(p.Currency),
		id("collectedBy", p.CollectedBy), moment("collectedAt", p.CollectedAt))
}

// VendorPayoutRecorded is money that was paid out to a vendor.
type VendorPayoutRecorded struct {
	LedgerEventID uuid.UUID `json:"ledgerEventId"`
	VendorStoreID uuid.UUID `json:"vendorStoreId"`
	AmountCents   int64     `json:"amountCents"`
	Currency      string    `json:"currency"`
	Reference     string    `json:"reference,omitempty"`
	PaidAt        time.Time `json:"paidAt"`
}

// EventType is vendor_payout_recorded.
func (VendorPayoutRecorded) EventType() enums.EventType { return enums.VendorPayoutRecorded }

// AggregateID is the entry in the ledger.
func (p VendorPayoutRecorded) AggregateID() uuid.UUID { return p.LedgerEventID }

// Validate says what is wrong with the data.
func (p VendorPayoutRecorded) Validate() error {
	return errors.Join(id("ledgerEventId", p.LedgerEventID), id("vendorStoreId", p.VendorStoreID),
		amount("amountCents", p.AmountCents), currency(p.Currency), moment("paidAt", p.PaidAt))
}
