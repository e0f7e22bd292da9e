package payloads

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"
)

// exact refuses data that Go accepts but consumers in other languages may not: a name that differs from a field's only in
// case, or a UUID that is not in its canonical form. It ignores names that no field has.
func exact(doc []byte, of reflect.Type) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[uuid.UUID]():
		return canonical(doc)
	case reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()): // a time, say, is one value
		return nil
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		var elements []json.RawMessage
		if err := json.Unmarshal(doc, &elements); err != nil {
			return err
		}
		for i, element := range elements {
			if err := exact(element, of.Elem()); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	case of.Kind() != reflect.Struct:
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		return err
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		for found, value := range fields {
			if found != name && strings.EqualFold(found, name) {
				return fmt.Errorf("the data has %q; the name is %q", found, name)
			}
			if found != name {
				continue
			}
			if err := exact(value, field.Type); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// canonical accepts a UUID as PostgreSQL writes it: 36 characters, with dashes. Capital letters are allowed.
func canonical(doc []byte) error {
	var id string
	if err := json.Unmarshal(doc, &id); err != nil {
		return err
	}
	if id == "" { // null, which is the same as nothing
		return nil
	}
	parsed, err := uuid.Parse(id)
	if err == nil && !strings.EqualFold(id, parsed.String()) {
		return fmt.Errorf("the UUID is %q; it must be written as %s", id, parsed)
	}
	return err
}
