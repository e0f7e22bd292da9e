package payloads

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// AdCreated is a campaign that a store has set up.
type AdCreated struct {
	AdID             uuid.UUID `json:"adId"`
	StoreID          uuid.UUID `json:"storeId"`
	Placement        string    `json:"placement"`
	DailyBudgetCents int64     `json:"dailyBudgetCents"`
	Currency         string    `json:"currency"`
	StartsAt         time.Time `json:"startsAt"`
	EndsAt           time.Time `json:"endsAt"`
}

// EventType is ad_created.
func (AdCreated) EventType() enums.EventType { return enums.AdCreated }

// AggregateID is the campaign.
func (p AdCreated) AggregateID() uuid.UUID { return p.AdID }

// Validate says what is wrong with the data.
func (p AdCreated) Validate() error {
	errs := errors.Join(id("adId", p.AdID), id("storeId", p.StoreID), text("placement", p.Placement),
		amount("dailyBudgetCents", p.DailyBudgetCents), currency(p.Currency),
		moment("startsAt", p.StartsAt), moment("endsAt", p.EndsAt))
	if errs == nil && !p.EndsAt.After(p.StartsAt) {
		return errors.New("endsAt is not after startsAt")
	}
	return errs
}

// AdUpdated is a campaign of which something was changed.
type AdUpdated struct {
	AdID    uuid.UUID `json:"adId"`
	StoreID uuid.UUID `json:"storeId"`
	// Changed are the names of the fields that were.
	Changed []string `json:"changed"`
}

// EventType is ad_updated.
func (AdUpdated) EventType() enums.EventType { return enums.AdUpdated }

// AggregateID is the campaign.
func (p AdUpdated) AggregateID() uuid.UUID { return p.AdID }

// Validate says what is wrong with the data.
func (p AdUpdated) Validate() error {
	return errors.Join(id("adId", p.AdID), id("storeId", p.StoreID),
		each("changed", p.Changed, func(field string) error { return text("the name", field) }))
}

// AdPaused is a campaign that is not shown for now. The event's aggregate says which; nothing more
// is needed, so that its data may be empty.
type AdPaused struct {
	Reason string `json:"reason,omitempty"`
}

// EventType is ad_paused.
func (AdPaused) EventType() enums.EventType { return enums.AdPaused }

// AggregateID is nil: the data does not name the campaign.
func (AdPaused) AggregateID() uuid.UUID { return uuid.Nil }

// Validate finds nothing wrong.
func (AdPaused) Validate() error { return nil }

// AdActivated is a campaign that is shown, for the first time or again. Its data may be empty, as
// that of AdPaused.
type AdActivated struct {
	Reason string `json:"reason,omitempty"`
}

// EventType is ad_activated.
func (AdActivated) EventType() enums.EventType { return enums.AdActivated }

// AggregateID is nil: the data does not name the campaign.
func (AdActivated) AggregateID() uuid.UUID { return uuid.Nil }

// Validate finds nothing wrong.
func (AdActivated) Validate() error { return nil }

// AdExpired is a campaign that has come to its end.
type AdExpired struct {
	AdID      uuid.UUID `json:"adId"`
	StoreID   uuid.UUID `json:"storeId"`
	ExpiredAt time.Time `json:"expiredAt"`
}

// EventType is ad_expired.
func (AdExpired) EventType() enums.EventType { return enums.AdExpired }

// AggregateID is the campaign.
func (p AdExpired) AggregateID() uuid.UUID { return p.AdID }

// Validate says what is wrong with the data.
func (p AdExpired) Validate() error {
	return errors.Join(id("adId", p.AdID), id("storeId", p.StoreID), moment("expiredAt", p.ExpiredAt))
}

// AdDailyRollupReady is a campaign's day, added up. Single clicks and impressions are no events.
type AdDailyRollupReady struct {
	AdID    uuid.UUID `json:"adId"`
	StoreID uuid.UUID `json:"storeId"`
	// Day is the date in UTC, as 2006-01-02.
	Day         string `json:"day"`
	Impressions int64  `json:"impressions"`
	Clicks      int64  `json:"clicks"`
	SpendCents  int64  `json:"spendCents"`
}

// EventType is ad_daily_rollup_ready.
func (AdDailyRollupReady) EventType() enums.EventType { return enums.AdDailyRollupReady }

// AggregateID is the campaign.
func (p AdDailyRollupReady) AggregateID() uuid.UUID { return p.AdID }

// Validate says what is wrong with the data.
func (p AdDailyRollupReady) Validate() error {
	day, err := time.Parse(time.DateOnly, p.Day)
	wrongDay := moment("day", day)
	if err != nil {
		wrongDay = fmt.Errorf("day is %q; it must be a date such as 2026-05-31", p.Day)
	}
	return errors.Join(id("adId", p.AdID), id("storeId", p.StoreID), wrongDay,
		count("impressions", p.Impressions), count("clicks", p.Clicks), count("spendCents", p.SpendCents))
}
