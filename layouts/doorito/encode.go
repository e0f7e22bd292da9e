package doorito

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/internal/jsoncheck"
)

// Encode writes a payload as JSON, with the values that JSON does not know in the form that
// Django's encoder gives them, so that handlers need not care which of the producers wrote it:
//
//   - a time.Time is ISO 8601 with its offset, Z for UTC, and milliseconds unless it has no
//     fraction: 2026-02-26T09:30:00.100Z;
//   - a time.Duration is ISO 8601 of days, hours, minutes and seconds, and microseconds unless it has
//     none: P0DT00H01M30.500000S;
//   - a UUID is its text;
//   - a decimal is a string with all its digits, never a number that somebody reads as a float.
//
// A decimal is known by its methods, so that any library will do: it writes itself as text
// (big.Float, big.Rat, apd), or both as text and as JSON (shopspring). pgtype.Numeric is one, too.
// A *big.Int is a number, as it is in Python.
//
// Everything else is as encoding/json has it: struct tags, and types with a MarshalJSON of their
// own. Text that is not UTF-8 is refused, not changed.
func Encode(payload any) ([]byte, error) {
	switch payload.(type) {
	case nil:
		return nil, nil // which emit refuses, in its own words
	case []byte:
		return nil, errors.New("is bytes, which JSON would hold as base64; a document that is JSON already is a json.RawMessage")
	}
	value, err := plain(reflect.ValueOf(payload), 0)
	if err != nil || value == nil {
		return nil, err
	}
	document, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot be encoded: %w", err)
	}
	return document, nil
}

// errDepth is said before the stack is used up, which would end the process.
var errDepth = fmt.Errorf("is nested deeper than %d levels, or holds itself", jsoncheck.MaxDepth)

// plain is a value as encoding/json is to write it.
func plain(value reflect.Value, depth int) (any, error) {
	if depth > jsoncheck.MaxDepth {
		return nil, errDepth
	}
	switch value.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Interface:
		return plain(value.Elem(), depth+1)
	case reflect.Pointer:
		if value.IsNil() {
			return nil, nil
		}
	}
	if written, ok, err := special(value); ok {
		return written, err
	}
	switch value.Kind() {
	case reflect.Pointer:
		return plain(value.Elem(), depth+1)
	case reflect.Map:
		return object(value, depth)
	case reflect.Slice, reflect.Array:
		return list(value, depth)
	case reflect.Struct:
		return fields(value, depth)
	case reflect.String:
		if !utf8.ValidString(value.String()) {
			return nil, fmt.Errorf("has text that is not valid UTF-8: %q", value.String())
		}
	}
	return value.Interface(), nil
}

// special is a value whose type says how it is written; ok is false for others.
func special(value reflect.Value) (written any, ok bool, err error) {
	if value.Kind() != reflect.Pointer {
		// Methods of a pointer count as well: big.Float has only those.
		pointer := reflect.New(value.Type())
		pointer.Elem().Set(value)
		value = pointer
	}
	switch v := value.Interface().(type) {
	case *time.Time:
		written, err = formatTime(*v)
	case *time.Duration:
		written = formatDuration(*v)
	case json.Marshaler:
		written, err = marshalJSON(v)
	case encoding.TextMarshaler:
		written, err = marshalText(v)
	default:
		return nil, false, nil
	}
	return written, true, err
}

// formatTime is the form of Django's encoder, which cuts microseconds and never rounds them.
func formatTime(t time.Time) (string, error) {
	if t.Year() < 1 || t.Year() > 9999 {
		return "", fmt.Errorf("has a time in the year %d; it must be between 1 and 9999", t.Year())
	}
	layout := "2006-01-02T15:04:05"
	if t.Nanosecond() >= int(time.Microsecond) {
		layout += ".000"
	}
	offset := "Z07:00"
	if _, seconds := t.Zone(); seconds%60 != 0 {
		offset += ":00" // the local mean time of old dates
	}
	return t.Format(layout + offset), nil
}

// formatDuration is the form of Django's encoder, of microseconds: Python's durations have no nanoseconds.
func formatDuration(d time.Duration) string {
	sign := ""
	if d = d.Truncate(time.Microsecond); d < 0 {
		sign = "-"
	}
	// Not of -d: the smallest duration has no positive counterpart.
	part := func(unit time.Duration) int64 {
		n := int64(d / unit)
		d %= unit
		return max(n, -n)
	}
	days, hours, minutes, seconds := part(24*time.Hour), part(time.Hour), part(time.Minute), part(time.Second)
	fraction := ""
	if microseconds := part(time.Microsecond); microseconds != 0 {
		fraction = fmt.Sprintf(".%06d", microseconds)
	}
	return fmt.Sprintf("%sP%dDT%02dH%02dM%02d%sS", sign, days, hours, minutes, seconds, fraction)
}

// marshalJSON is what a value writes of itself, but for decimals that write a number.
func marshalJSON(v json.Marshaler) (any, error) {
	document, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot be encoded: %w", err)
	}
	if first := document[0]; isDecimal(v) && (first == '-' || '0' <= first && first <= '9') {
		return string(document), nil
	}
	return json.RawMessage(document), nil
}

func isDecimal(v json.Marshaler) bool {
	switch v.(type) {
	case *big.Int:
		return false
	case *pgtype.Numeric:
		return true
	}
	_, ok := v.(encoding.TextMarshaler)
	return ok
}

func marshalText(v encoding.TextMarshaler) (any, error) {
	text, err := v.MarshalText()
	if err != nil {
		return nil, fmt.Errorf("cannot be encoded: %w", err)
	}
	return plain(reflect.ValueOf(string(text)), 0)
}

func list(value reflect.Value, depth int) (any, error) {
	if value.Kind() == reflect.Slice && value.IsNil() {
		return nil, nil
	}
	if value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8 {
		return value.Interface(), nil // base64
	}
	items := make([]any, value.Len())
	for i := range items {
		var err error
		if items[i], err = plain(value.Index(i), depth+1); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func object(value reflect.Value, depth int) (any, error) {
	if value.IsNil() {
		return nil, nil
	}
	members := make(map[string]any, value.Len())
	for entry := value.MapRange(); entry.Next(); {
		name, err := memberName(entry.Key())
		if err != nil {
			return nil, err
		}
		if members[name], err = plain(entry.Value(), depth+1); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// memberName is the key of a map as encoding/json has it.
func memberName(key reflect.Value) (string, error) {
	if key.Kind() == reflect.String {
		if !utf8.ValidString(key.String()) {
			return "", fmt.Errorf("has a key that is not valid UTF-8: %q", key.String())
		}
		return key.String(), nil
	}
	if marshaler, ok := key.Interface().(encoding.TextMarshaler); ok {
		text, err := marshaler.MarshalText()
		return string(text), err
	}
	switch {
	case key.CanInt():
		return strconv.FormatInt(key.Int(), 10), nil
	case key.CanUint():
		return strconv.FormatUint(key.Uint(), 10), nil
	}
	return "", fmt.Errorf("has a map with keys of type %s; JSON has only text", key.Type())
}
