package doorito

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/packfinderz/outbox/internal/jsoncheck"
)

// fields converts a struct to an object, by its json tags. It does not keep their order: jsonb has its own.
func fields(value reflect.Value, depth int) (any, error) {
	members := make(map[string]any, value.NumField())
	err := addFields(members, value, depth)
	return members, err
}

// addFields adds a struct's members to those of the struct that embeds it. Embedded structs come first, so that an
// outer field of the same name wins.
func addFields(members map[string]any, value reflect.Value, depth int) error {
	if depth > jsoncheck.MaxDepth {
		return errDepth
	}
	var own []field
	for i := range value.NumField() {
		f := describe(value.Type().Field(i), value.Field(i))
		switch {
		case f.name == "":
		case !f.embedded:
			own = append(own, f)
		default:
			if err := addEmbedded(members, f.value, depth); err != nil {
				return err
			}
		}
	}
	for _, f := range own {
		if f.omitted() {
			continue
		}
		member, err := f.plain(depth)
		if err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
		members[f.name] = member
	}
	return nil
}

func addEmbedded(members map[string]any, value reflect.Value, depth int) error {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	return addFields(members, value, depth+1)
}

// field is a struct field with the settings of its tag.
type field struct {
	name     string // empty if the field is not written
	options  []string
	value    reflect.Value
	embedded bool // its members belong to the outer struct
}

func describe(declared reflect.StructField, value reflect.Value) field {
	tag := declared.Tag.Get("json")
	if tag == "-" {
		return field{}
	}
	options := strings.Split(tag, ",")
	f := field{name: options[0], options: options[1:], value: value}
	inner := declared.Type
	if inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	f.embedded = declared.Anonymous && f.name == "" && inner.Kind() == reflect.Struct
	// An unexported embedded struct may still have exported fields.
	if !declared.IsExported() && (!f.embedded || declared.Type.Kind() == reflect.Pointer) {
		return field{}
	}
	f.name = cmp.Or(f.name, declared.Name)
	return f
}

func (f *field) has(option string) bool { return slices.Contains(f.options, option) }

func (f *field) omitted() bool {
	return f.has("omitempty") && isEmpty(f.value) || f.has("omitzero") && isZero(f.value)
}

func isEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return value.Len() == 0
	case reflect.Struct:
		return false
	}
	return value.IsZero()
}

func isZero(value reflect.Value) bool {
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return true
	}
	if v, ok := value.Interface().(interface{ IsZero() bool }); ok {
		return v.IsZero()
	}
	return value.IsZero()
}

// plain returns the field's value. With the option "string", a number, boolean or text is written as a string.
func (f *field) plain(depth int) (any, error) {
	value := f.value
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	quoted := f.has("string") && (value.CanInt() || value.CanUint() || value.CanFloat() ||
		value.Kind() == reflect.Bool || value.Kind() == reflect.String)
	member, err := plain(f.value, depth+1)
	if _, written := value.Interface().(time.Duration); err != nil || !quoted || written {
		return member, err
	}
	document, err := json.Marshal(member)
	return string(document), err
}
