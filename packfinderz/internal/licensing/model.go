package licensing

import (
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// Store sells in the marketplace. Times are the database's.
type Store struct {
	ID        uuid.UUID `gorm:"primaryKey" json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `gorm:"<-:false" json:"createdAt"`
}

// License is a store's permission to sell, and the status of its review.
type License struct {
	ID      uuid.UUID              `gorm:"primaryKey" json:"id"`
	StoreID uuid.UUID              `json:"storeId"`
	Number  string                 `json:"number"`
	Status  payloads.LicenseStatus `json:"status"`
	// Reason is why it was rejected.
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `gorm:"<-:false" json:"createdAt"`
	UpdatedAt time.Time `gorm:"<-:update;autoUpdateTime:false" json:"updatedAt"`
}

// Notification is a message about a licence. The worker writes it.
type Notification struct {
	ID        uuid.UUID              `gorm:"primaryKey" json:"id"`
	EventID   uuid.UUID              `json:"eventId"`
	Type      string                 `json:"type"`
	Audience  string                 `json:"audience"`
	StoreID   uuid.UUID              `json:"storeId"`
	LicenseID uuid.UUID              `json:"licenseId"`
	Status    payloads.LicenseStatus `json:"status"`
	Reason    string                 `json:"reason,omitempty"`
	Message   string                 `json:"message"`
	CreatedAt time.Time              `json:"createdAt"`
}
