package payloads

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// OrderCreated is a checkout that became one order for each vendor in the cart.
type OrderCreated struct {
	CheckoutGroupID uuid.UUID     `json:"checkoutGroupId"`
	BuyerStoreID    uuid.UUID     `json:"buyerStoreId"`
	VendorOrders    []VendorOrder `json:"vendorOrders"`
	TotalCents      int64         `json:"totalCents"`
	Currency        string        `json:"currency"`
}

// VendorOrder is one vendor's part of a checkout.
type VendorOrder struct {
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	VendorStoreID uuid.UUID `json:"vendorStoreId"`
	TotalCents    int64     `json:"totalCents"`
	LineItems     int64     `json:"lineItems"`
}

// EventType is order_created.
func (OrderCreated) EventType() enums.EventType { return enums.OrderCreated }

// AggregateID is the checkout group.
func (p OrderCreated) AggregateID() uuid.UUID { return p.CheckoutGroupID }

// Validate says what is wrong with the data.
func (p OrderCreated) Validate() error {
	return errors.Join(
		id("checkoutGroupId", p.CheckoutGroupID), id("buyerStoreId", p.BuyerStoreID),
		count("totalCents", p.TotalCents), currency(p.Currency),
		each("vendorOrders", p.VendorOrders, func(o VendorOrder) error {
			return errors.Join(id("vendorOrderId", o.VendorOrderID), id("vendorStoreId", o.VendorStoreID),
				count("totalCents", o.TotalCents), amount("lineItems", o.LineItems))
		}),
	)
}

// OrderStateChanged is a vendor's order on its way from one state to the next.
type OrderStateChanged struct {
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	From          string    `json:"from"`
	To            string    `json:"to"`
	Reason        string    `json:"reason,omitempty"`
}

// EventType is order_state_changed.
func (OrderStateChanged) EventType() enums.EventType { return enums.OrderStateChanged }

// AggregateID is the vendor's order.
func (p OrderStateChanged) AggregateID() uuid.UUID { return p.VendorOrderID }

// Validate says what is wrong with the data.
func (p OrderStateChanged) Validate() error {
	return errors.Join(id("vendorOrderId", p.VendorOrderID), changed(p.From, p.To))
}

// LineItemStateChanged is one line of a vendor's order that was accepted, rejected, fulfilled.
type LineItemStateChanged struct {
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	LineItemID    uuid.UUID `json:"lineItemId"`
	From          string    `json:"from"`
	To            string    `json:"to"`
	Reason        string    `json:"reason,omitempty"`
}

// EventType is line_item_state_changed.
func (LineItemStateChanged) EventType() enums.EventType { return enums.LineItemStateChanged }

// AggregateID is the vendor's order.
func (p LineItemStateChanged) AggregateID() uuid.UUID { return p.VendorOrderID }

// Validate says what is wrong with the data.
func (p LineItemStateChanged) Validate() error {
	return errors.Join(id("vendorOrderId", p.VendorOrderID), id("lineItemId", p.LineItemID), changed(p.From, p.To))
}

// OrderExpired is an order that its vendor did not answer in time.
type OrderExpired struct {
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	ExpiredAt     time.Time `json:"expiredAt"`
}

// EventType is order_expired.
func (OrderExpired) EventType() enums.EventType { return enums.OrderExpired }

// AggregateID is the vendor's order.
func (p OrderExpired) AggregateID() uuid.UUID { return p.VendorOrderID }

// Validate says what is wrong with the data.
func (p OrderExpired) Validate() error {
	return errors.Join(id("vendorOrderId", p.VendorOrderID), moment("expiredAt", p.ExpiredAt))
}

// Party is who acts in an order.
type Party string

// The parties of an order.
const (
	Buyer  Party = "buyer"
	Vendor Party = "vendor"
	Admin  Party = "admin"
	System Party = "system"
)

// OrderCanceled is an order that somebody took back.
type OrderCanceled struct {
	VendorOrderID uuid.UUID `json:"vendorOrderId"`
	CanceledBy    Party     `json:"canceledBy"`
	Reason        string    `json:"reason,omitempty"`
}

// EventType is order_canceled.
func (OrderCanceled) EventType() enums.EventType { return enums.OrderCanceled }

// AggregateID is the vendor's order.
func (p OrderCanceled) AggregateID() uuid.UUID { return p.VendorOrderID }

// Validate says what is wrong with the data.
func (p OrderCanceled) Validate() error {
	return errors.Join(id("vendorOrderId", p.VendorOrderID), oneOf("canceledBy", p.CanceledBy, Buyer, Vendor, Admin, System))
}

// ReservationReleased is stock that an order no longer holds.
type ReservationReleased struct {
	VendorOrderID uuid.UUID       `json:"vendorOrderId"`
	Items         []ReleasedStock `json:"items"`
	Reason        string          `json:"reason,omitempty"`
}

// ReleasedStock is how much of a product is for sale again.
type ReleasedStock struct {
	LineItemID uuid.UUID `json:"lineItemId"`
	ProductID  uuid.UUID `json:"productId"`
	Quantity   int64     `json:"quantity"`
}

// EventType is reservation_released.
func (ReservationReleased) EventType() enums.EventType { return enums.ReservationReleased }

// AggregateID is the vendor's order.
func (p ReservationReleased) AggregateID() uuid.UUID { return p.VendorOrderID }

// Validate says what is wrong with the data.
func (p ReservationReleased) Validate() error {
	return errors.Join(id("vendorOrderId", p.VendorOrderID), each("items", p.Items, func(s ReleasedStock) error {
		return errors.Join(id("lineItemId", s.LineItemID), id("productId", s.ProductID), amount("quantity", s.Quantity))
	}))
}
