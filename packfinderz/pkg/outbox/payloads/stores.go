package payloads

import (
	"errors"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// LicenseStatus is how far the review of a licence has come.
type LicenseStatus string

// The states of a licence.
const (
	LicensePending  LicenseStatus = "pending"
	LicenseVerified LicenseStatus = "verified"
	LicenseRejected LicenseStatus = "rejected"
)

// LicenseStatusChanged is a licence that was uploaded (pending), verified or rejected.
type LicenseStatusChanged struct {
	LicenseID uuid.UUID     `json:"licenseId"`
	StoreID   uuid.UUID     `json:"storeId"`
	Status    LicenseStatus `json:"status"`
	Reason    string        `json:"reason,omitempty"`
}

// EventType is license_status_changed.
func (LicenseStatusChanged) EventType() enums.EventType { return enums.LicenseStatusChanged }

// AggregateID is the licence.
func (p LicenseStatusChanged) AggregateID() uuid.UUID { return p.LicenseID }

// Validate says what is wrong with the data.
func (p LicenseStatusChanged) Validate() error {
	return errors.Join(id("licenseId", p.LicenseID), id("storeId", p.StoreID),
		oneOf("status", p.Status, LicensePending, LicenseVerified, LicenseRejected))
}

// MediaUploaded is a file that a store has uploaded whole.
type MediaUploaded struct {
	MediaID   uuid.UUID `json:"mediaId"`
	StoreID   uuid.UUID `json:"storeId"`
	Kind      string    `json:"kind"`
	MIMEType  string    `json:"mimeType"`
	ObjectKey string    `json:"objectKey"`
	SizeBytes int64     `json:"sizeBytes"`
}

// EventType is media_uploaded.
func (MediaUploaded) EventType() enums.EventType { return enums.MediaUploaded }

// AggregateID is the file.
func (p MediaUploaded) AggregateID() uuid.UUID { return p.MediaID }

// Validate says what is wrong with the data.
func (p MediaUploaded) Validate() error {
	return errors.Join(id("mediaId", p.MediaID), id("storeId", p.StoreID), text("kind", p.Kind),
		text("mimeType", p.MIMEType), text("objectKey", p.ObjectKey), amount("sizeBytes", p.SizeBytes))
}

// Channel is the way a notification takes.
type Channel string

// The channels of notifications.
const (
	InApp Channel = "in_app"
	Email Channel = "email"
	SMS   Channel = "sms"
)

// NotificationRequested is a message that somebody is to get: a store, or one user.
type NotificationRequested struct {
	NotificationID uuid.UUID         `json:"notificationId"`
	StoreID        *uuid.UUID        `json:"storeId,omitempty"`
	UserID         *uuid.UUID        `json:"userId,omitempty"`
	Channel        Channel           `json:"channel"`
	Template       string            `json:"template"`
	Values         map[string]string `json:"values,omitempty"`
}

// EventType is notification_requested.
func (NotificationRequested) EventType() enums.EventType { return enums.NotificationRequested }

// AggregateID is the notification.
func (p NotificationRequested) AggregateID() uuid.UUID { return p.NotificationID }

// Validate says what is wrong with the data.
func (p NotificationRequested) Validate() error {
	return errors.Join(id("notificationId", p.NotificationID), oneOf("channel", p.Channel, InApp, Email, SMS),
		text("template", p.Template), present("one of storeId and userId", some(p.StoreID) || some(p.UserID)))
}

func some(id *uuid.UUID) bool { return id != nil && *id != uuid.Nil }
