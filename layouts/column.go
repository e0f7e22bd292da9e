package layouts

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/packfinderz/outbox/internal/sqlname"
)

// Field is the name of a logical field, as written in a layout file.
type Field string

// The logical fields a table can have columns for.
const (
	FieldID            Field = "id"
	FieldNamespace     Field = "namespace"
	FieldTopic         Field = "topic"
	FieldType          Field = "type"
	FieldAggregateType Field = "aggregateType"
	FieldAggregateID   Field = "aggregateId"
	FieldTenantID      Field = "tenantId"
	FieldDedupeKey     Field = "dedupeKey"
	FieldKey           Field = "key"
	FieldPayload       Field = "payload"
	FieldHeaders       Field = "headers"
	FieldContentType   Field = "contentType"
	FieldMaxAttempts   Field = "maxAttempts"
	FieldStatus        Field = "status"
	FieldAttempts      Field = "attempts"
	FieldNextAttemptAt Field = "nextAttemptAt"
	FieldLockedBy      Field = "lockedBy"
	FieldLockedUntil   Field = "lockedUntil"
	FieldLastError     Field = "lastError"
	FieldCreatedAt     Field = "createdAt"
	FieldUpdatedAt     Field = "updatedAt"
	FieldDeliveredAt   Field = "deliveredAt"
)

// Columns maps logical fields to a table's columns. A zero Column means that the table has no column for the field.
type Columns struct {
	ID            Column `json:"id"`
	Namespace     Column `json:"namespace,omitzero"`
	Topic         Column `json:"topic,omitzero"`
	Type          Column `json:"type,omitzero"`
	AggregateType Column `json:"aggregateType,omitzero"`
	AggregateID   Column `json:"aggregateId,omitzero"`
	TenantID      Column `json:"tenantId,omitzero"`
	DedupeKey     Column `json:"dedupeKey,omitzero"`
	Key           Column `json:"key,omitzero"`
	Payload       Column `json:"payload"`
	Headers       Column `json:"headers,omitzero"`
	ContentType   Column `json:"contentType,omitzero"`
	MaxAttempts   Column `json:"maxAttempts,omitzero"`
	Status        Column `json:"status,omitzero"`
	Attempts      Column `json:"attempts"`
	NextAttemptAt Column `json:"nextAttemptAt,omitzero"`
	LockedBy      Column `json:"lockedBy,omitzero"`
	LockedUntil   Column `json:"lockedUntil,omitzero"`
	LastError     Column `json:"lastError,omitzero"`
	CreatedAt     Column `json:"createdAt"`
	UpdatedAt     Column `json:"updatedAt,omitzero"`
	DeliveredAt   Column `json:"deliveredAt,omitzero"`
}

// Column is one column of a table. In a layout file it is a name, or an object if it has other settings.
type Column struct {
	// Name is the column's name.
	Name string `json:"name"`
	// Type is the column's type if it is not the field's usual one: uuid, text, json, jsonb or bytea.
	Type string `json:"type,omitempty"`
	// Enum is the column's enum type, which is in the layout's schema.
	Enum string `json:"enum,omitempty"`
	// NotNull is set if the column is NOT NULL. Emit then refuses an event without the field. It writes an empty
	// text for the last error, and the event's id for a missing dedupe key.
	NotNull bool `json:"notNull,omitempty"`
	// MaxLength is the column's limit in characters.
	MaxLength int `json:"maxLength,omitempty"`
	// Values are the values the column accepts, such as those of its enum; empty for any.
	Values []string `json:"values,omitempty"`
}

// IsZero reports whether the table has no such column.
func (c Column) IsZero() bool {
	return c.Name == "" && c.Type == "" && c.Enum == "" && !c.NotNull && c.MaxLength == 0 && len(c.Values) == 0
}

// MarshalJSON writes a column that has only a name as that name.
func (c Column) MarshalJSON() ([]byte, error) {
	type plain Column
	settings := c
	settings.Name = ""
	if settings.IsZero() {
		return json.Marshal(c.Name)
	}
	return json.Marshal(plain(c))
}

// UnmarshalJSON reads a name or an object.
func (c *Column) UnmarshalJSON(doc []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(doc), []byte{'"'}) {
		*c = Column{}
		return json.Unmarshal(doc, &c.Name)
	}
	type plain Column
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.DisallowUnknownFields()
	var p plain
	if err := decoder.Decode(&p); err != nil {
		return fmt.Errorf("a column is a name or an object with name, type, enum, notNull, maxLength and values: %w", err)
	}
	*c = Column(p)
	return nil
}

// NamedColumn is a column together with its field.
type NamedColumn struct {
	// Field is the field.
	Field Field
	Column
}

// All returns a column for every field, in the order of the fields; those the table lacks are zero.
func (c *Columns) All() []NamedColumn {
	return []NamedColumn{
		{FieldID, c.ID},
		{FieldNamespace, c.Namespace},
		{FieldTopic, c.Topic},
		{FieldType, c.Type},
		{FieldAggregateType, c.AggregateType},
		{FieldAggregateID, c.AggregateID},
		{FieldTenantID, c.TenantID},
		{FieldDedupeKey, c.DedupeKey},
		{FieldKey, c.Key},
		{FieldPayload, c.Payload},
		{FieldHeaders, c.Headers},
		{FieldContentType, c.ContentType},
		{FieldMaxAttempts, c.MaxAttempts},
		{FieldStatus, c.Status},
		{FieldAttempts, c.Attempts},
		{FieldNextAttemptAt, c.NextAttemptAt},
		{FieldLockedBy, c.LockedBy},
		{FieldLockedUntil, c.LockedUntil},
		{FieldLastError, c.LastError},
		{FieldCreatedAt, c.CreatedAt},
		{FieldUpdatedAt, c.UpdatedAt},
		{FieldDeliveredAt, c.DeliveredAt},
	}
}

// All returns the columns of a dead-letter table.
func (c *DeadLetterColumns) All() []NamedColumn {
	return []NamedColumn{
		{"id", c.ID},
		{"eventId", c.EventID},
		{FieldType, c.Type},
		{FieldAggregateType, c.AggregateType},
		{FieldAggregateID, c.AggregateID},
		{FieldPayload, c.Payload},
		{"reason", c.Reason},
		{"failedAt", c.FailedAt},
		{FieldCreatedAt, c.CreatedAt},
		{FieldAttempts, c.Attempts},
		{FieldLastError, c.LastError},
		{"retriedAt", c.RetriedAt},
	}
}

// SQLType returns the PostgreSQL type of a field's column, if it is not an enum.
func (c Column) SQLType(field Field) string {
	if c.Type != "" {
		return c.Type
	}
	switch field {
	case FieldID, FieldTenantID, FieldLockedBy, "eventId":
		return "uuid"
	case FieldPayload, FieldHeaders:
		return "jsonb"
	case FieldMaxAttempts, FieldAttempts:
		return "integer"
	case FieldNextAttemptAt, FieldLockedUntil, FieldCreatedAt, FieldUpdatedAt, FieldDeliveredAt, "failedAt", "retriedAt":
		return "timestamptz"
	default:
		return "text"
	}
}

// SQLType returns the PostgreSQL type of a field's column.
func (l *Layout) SQLType(c Column, field Field) string {
	if c.Enum != "" {
		return sqlname.Qualified(l.Schema, c.Enum)
	}
	return c.SQLType(field)
}

// Column returns the column of a field.
func (l *Layout) Column(field Field) Column {
	for _, c := range l.Columns.All() {
		if c.Field == field {
			return c.Column
		}
	}
	return Column{}
}
