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

// Encode returns a payload as JSON. It writes values that JSON has no type for as Django's encoder does, so that
// handlers need not know which producer wrote them:
//
//   - a time.Time is ISO 8601 with its offset, Z for UTC, and milliseconds if it has a fraction:
//     2026-02-26T09:30:00.100Z;
//   - a time.Duration is ISO 8601 with days, hours, minutes and seconds, and microseconds if it has any:
//     P0DT00H01M30.500000S;
//   - a UUID is its text;
//   - a decimal is a string with all its digits, because a reader may take a number for a float.
//
// Encode recognizes a decimal of any library by its methods: it marshals itself as text (big.Float, big.Rat, apd),
// or as both text and JSON (shopspring). pgtype.Numeric is a decimal, too. A *big.Int is a number, as in Python.
//
// Everything else follows encoding/json: struct tags, and types with their own MarshalJSON. Text that is not UTF-8
// is refused, not changed.
func Encode(payload any) ([]byte, error) {
	switch payload.(type) {
	case nil:
		return nil, nil // emit refuses it with its own error
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

// errDepth is returned before the stack overflows, which would end the process.
var errDepth = fmt.Errorf("is nested deeper than %d levels, or holds itself", jsoncheck.MaxDepth)

// plain converts a value to one that encoding/json writes as wanted.
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

// special converts a value whose type decides how it is written; ok is false for others.
func special(value reflect.Value) (written any, ok bool, err error) {
	if value.Kind() != reflect.Pointer {
		// Pointer methods count as well: big.Float has only those.
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

// formatTime formats a time as Django's encoder does, which truncates microseconds.
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
		offset += ":00" // local mean time, of old dates
	}
	return t.Format(layout + offset), nil
}

// formatDuration formats a duration as Django's encoder does, in microseconds: Python's durations have no
// nanoseconds.
func formatDuration(d time.Duration) string {
	sign := ""
	if d = d.Truncate(time.Microsecond); d < 0 {
		sign = "-"
	}
	// Do not negate d: the smallest duration has no positive counterpart.
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

// marshalJSON returns a value's own JSON, but a decimal's number as a string.
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

// memberName returns a map's key as encoding/json writes it.
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
