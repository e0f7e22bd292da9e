// Package emit holds what the three emitters (pgx, database/sql, GORM) share: an
// event is checked, turned into the arguments of one INSERT, and the answer is
// turned into "inserted" or "already enqueued". Only the driver differs.
package emit

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstream"
)

// planOf compiles a target.
func planOf(target outbox.Target) (*Plan, error) {
	switch target := target.(type) {
	case pgstream.Stream:
		return streamPlan(target)
	case layouts.Layout:
		return tablePlan(&target)
	}
	return nil, fmt.Errorf("outbox: cannot emit to a %T; give a pgstream.Stream or a layouts.Layout", target)
}

// Plan is a target, compiled: what it accepts and the statements that write it.
// Every parameter has its type written in the statement, so that one plan serves
// every driver.
type Plan struct {
	// Target names the target in messages, such as "layout modkit".
	Target string
	// Layout is the name by which the target's tables are made.
	Layout string
	// Fields are the event fields the target can store, with their rules.
	Fields Fields
	// Columns are the parameters of the statements that insert, in order.
	Columns []Column
	// Insert writes one event: $1… are the columns. It affects no row on a conflict.
	Insert string
	// InsertMany writes many: $1… are the columns of all rows, each in the form that its
	// kind has (see Column). No id is there twice. It returns the ids it wrote.
	InsertMany string
	// InsertNew and InsertManyNew do the same for events that can meet no conflict, because
	// their ids are new and they have no dedupe keys. That saves a quarter of the time.
	InsertNew, InsertManyNew string
	// NewColumns are those of Columns that these two take.
	NewColumns []Column
	// Find looks up events that were there already. Its parameters are the columns that
	// FindColumns names, of all rows; it returns (1-based place, id).
	Find        string
	FindColumns []int
	// DefaultMaxAttempts is written for events that do not set their own.
	DefaultMaxAttempts int
	// DedupeFromID is set where the dedupe column cannot be NULL: an event without a
	// key gets its id as one.
	DedupeFromID bool
	// KeyFromAggregate is set where events of one key keep their order: an event without a
	// key of its own gets "type/id" of its aggregate, whose events are expected in order.
	KeyFromAggregate bool
	// Lock makes the transaction the only one that emits events of some keys until it ends.
	// $1 is the array of the keys. Empty where the target keeps no order per key.
	Lock string
	// SortByDedupe is set where the order of the rows in a statement means nothing.
	// Rows are then written in key order, so that two transactions emitting the same
	// keys wait for each other instead of deadlocking.
	SortByDedupe bool
}

// Column is one parameter of a plan. Exactly one of the functions is set; it decides, too,
// how the values of many events are sent.
type Column struct {
	// Text is the value as PostgreSQL reads it, or nil for NULL. Many are a text[].
	Text func(*outbox.Event) *string
	// UUID is the value of a uuid column. Many are a uuid[].
	UUID func(*outbox.Event) pgtype.UUID
	// Bytes is the value of a bytea column. Many are a bytea[].
	Bytes func(*outbox.Event) []byte
	// JSON is a document, never NULL. Many are one text, with a JSONSeparator between them:
	// the payloads are most of what is sent, and drivers grow an array element by element.
	JSON func(*outbox.Event) []byte
	// Shared is set, beside Text, where the statements for many take an array of a single
	// value as the value of all rows: what all events have in common is sent and read once.
	Shared bool
}

// JSONSeparator is a byte that JSON has no place for, neither in strings nor between them.
const JSONSeparator = 0x1E

// Rule says how a target stores one event field. The zero Rule is "not at all".
type Rule struct {
	// Stored is true where the target has a column for the field.
	Stored bool
	// Required refuses an empty value.
	Required bool
	// UUID refuses anything that is not a UUID.
	UUID bool
	// MaxLength is the column's limit in characters; zero for none of its own.
	MaxLength int
	// Values are the only values accepted; empty for any.
	Values []string
}

// Fields are the rules of a target for every field of an event. The id is always
// stored and a payload always required.
type Fields struct {
	Namespace, Topic, Type, AggregateType, AggregateID Rule
	TenantID, DedupeKey, Key                           Rule
	Headers, ContentType, NotBefore, MaxAttempts       Rule
	Payload                                            PayloadFormat
}

// PayloadFormat is what a payload column can hold.
type PayloadFormat int

// The formats of a payload column.
const (
	// PayloadJSONB is parsed by the server and given back in its own spelling.
	PayloadJSONB PayloadFormat = iota
	// PayloadJSON is checked by the server and kept byte for byte.
	PayloadJSON
	// PayloadText is any text without NUL.
	PayloadText
	// PayloadBytes is anything.
	PayloadBytes
)
