package payloads

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// exactNames refuses data with a name that differs only in case from that of a field. encoding/json takes
// such names, and consumers in other languages do not: the publisher would have checked a field that is
// missing for them. Names that no field has are passed over.
func exactNames(doc []byte, of reflect.Type) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()): // a time, say, is one value
		return nil
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		var elements []json.RawMessage
		if err := json.Unmarshal(doc, &elements); err != nil {
			return err
		}
		for i, element := range elements {
			if err := exactNames(element, of.Elem()); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
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
			if err := exactNames(value, field.Type); err != nil {
				return fmt.Errorf("%s%w", name, err)
			}
		}
	}
	return nil
}
