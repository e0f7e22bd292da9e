package outboxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// field is a field of an event as text, empty if it is zero.
type field struct{ name, text string }

// fields are all but the headers and the payload, in the order in which they are compared and shown.
func fields(e *outbox.Event) []field {
	id := func(id uuid.UUID) string {
		if id == uuid.Nil {
			return ""
		}
		return id.String()
	}
	notBefore, maxAttempts := "", ""
	if !e.NotBefore.IsZero() {
		// PostgreSQL keeps microseconds.
		notBefore = e.NotBefore.UTC().Round(time.Microsecond).Format(time.RFC3339Nano)
	}
	if e.MaxAttempts != 0 {
		maxAttempts = strconv.Itoa(e.MaxAttempts)
	}
	return []field{
		{"type", e.Type}, {"topic", e.Topic}, {"key", e.Key}, {"namespace", e.Namespace},
		{"aggregate type", e.AggregateType}, {"aggregate id", e.AggregateID},
		{"id", id(e.ID)}, {"tenant id", id(e.TenantID)}, {"dedupe key", e.DedupeKey},
		{"content type", e.ContentType}, {"not before", notBefore}, {"max attempts", maxAttempts},
	}
}

// difference is the first thing in which an event differs from a pattern, in words, or empty if the event matches.
func difference(want, have *outbox.Event) string {
	found := fields(have)
	for i, wanted := range fields(want) {
		if wanted.text != "" && wanted.text != found[i].text {
			return fmt.Sprintf("%s is %q, want %q", wanted.name, found[i].text, wanted.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.Headers)) {
		value, ok := have.Headers[name]
		if !ok {
			return fmt.Sprintf("header %q is missing", name)
		}
		if value != want.Headers[name] {
			return fmt.Sprintf("header %q is %q, want %q", name, value, want.Headers[name])
		}
	}
	if want.Payload == nil {
		return ""
	}
	wanted, err := decode(want.Payload)
	if err != nil {
		return bytesDiffer(want.Payload, have.Payload)
	}
	value, err := decode(have.Payload)
	if err != nil {
		return bytesDiffer(want.Payload, have.Payload)
	}
	return valuesDiffer("payload", wanted, value)
}

func bytesDiffer(want, have []byte) string {
	if bytes.Equal(want, have) {
		return ""
	}
	return fmt.Sprintf("payload is %s, want %s", shown(have), shown(want))
}

// decode reads one JSON value and keeps its numbers exact.
func decode(document []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return value, nil
}

// valuesDiffer compares JSON: objects by the members of the wanted one, anything else as a whole.
func valuesDiffer(path string, want, have any) string {
	differ := func() string {
		return fmt.Sprintf("%s is %s, want %s", path, encode(have), encode(want))
	}
	switch want := want.(type) {
	case map[string]any:
		object, ok := have.(map[string]any)
		if !ok {
			return differ()
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			value, ok := object[name]
			if !ok {
				return fmt.Sprintf("%s.%s is missing", path, name)
			}
			if differs := valuesDiffer(path+"."+name, want[name], value); differs != "" {
				return differs
			}
		}
		return ""
	case []any:
		array, ok := have.([]any)
		if !ok || len(array) != len(want) {
			return differ()
		}
		for i := range want {
			if differs := valuesDiffer(fmt.Sprintf("%s[%d]", path, i), want[i], array[i]); differs != "" {
				return differs
			}
		}
		return ""
	case json.Number:
		if number, ok := have.(json.Number); ok && numbersEqual(want, number) {
			return ""
		}
		return differ()
	}
	if want != have {
		return differ()
	}
	return ""
}

// numbersEqual compares values: jsonb writes 1e3 as 1000.
func numbersEqual(a, b json.Number) bool {
	const precision = 1024 // bits; no float64, which cannot tell large ids apart
	x, _, errX := big.ParseFloat(a.String(), 10, precision, big.ToNearestEven)
	y, _, errY := big.ParseFloat(b.String(), 10, precision, big.ToNearestEven)
	return a == b || errX == nil && errY == nil && x.Cmp(y) == 0
}

// encode is a decoded value as JSON.
func encode(value any) string {
	document, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return shown(document)
}

const (
	maxShown  = 300 // bytes of a payload
	maxListed = 50  // events
)

// list shows the events of a target.
func list(name string, have []outbox.Event) string {
	if len(have) == 0 {
		return "There is no event in " + name + "."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The events in %s:", name)
	for i := range have {
		if i == maxListed {
			fmt.Fprintf(&b, "\n    and %d more", len(have)-maxListed)
			break
		}
		fmt.Fprintf(&b, "\n%5d. %s", i+1, describe(&have[i]))
	}
	return b.String()
}

// describe shows an event, or a pattern, in a line.
func describe(e *outbox.Event) string {
	var parts []string
	for i, f := range fields(e) {
		switch {
		case f.text == "":
		case i == 0:
			parts = append(parts, f.text) // the type needs no name
		default:
			parts = append(parts, f.name+"="+f.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		parts = append(parts, "header "+name+"="+e.Headers[name])
	}
	if e.Payload != nil {
		parts = append(parts, "payload="+shown(e.Payload))
	}
	if len(parts) == 0 {
		return "any event"
	}
	return strings.Join(parts, " ")
}

// shown is a payload as text, cut if it is long.
func shown(payload []byte) string {
	text := string(payload)
	if !utf8.Valid(payload) {
		text = fmt.Sprintf("%q", payload)
	}
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:cut], len(payload))
}
