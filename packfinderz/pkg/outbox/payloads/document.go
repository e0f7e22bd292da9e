package payloads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// unambiguous refuses a JSON document with the same name twice in an object: encoding/json reads the last one, others
// the first. It also refuses the character U+0000, which PostgreSQL's texts cannot hold. A jsonb column refuses both,
// an adopted json column neither. doc is known to be JSON.
func unambiguous(doc []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber() // one that float64 cannot hold may be in a field that nobody knows
	return unambiguousValue(decoder)
}

func unambiguousValue(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch value := token.(type) {
	case string:
		return withoutNUL(value)
	case json.Delim:
		var names map[string]bool
		if value == '{' {
			names = make(map[string]bool)
		}
		for decoder.More() {
			if err := newName(decoder, names); err != nil {
				return err
			}
			if err := unambiguousValue(decoder); err != nil {
				return err
			}
		}
		_, err = decoder.Token() // the end of the object or the array
	}
	return err
}

// newName reads the next name of an object; an array has none.
func newName(decoder *json.Decoder, names map[string]bool) error {
	if names == nil {
		return nil
	}
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string) // or the decoder would have refused it
	if names[name] {
		return fmt.Errorf("%q is there twice", name)
	}
	names[name] = true
	return withoutNUL(name)
}

func withoutNUL(text string) error {
	if strings.ContainsRune(text, 0) {
		return errors.New(`a text has the character \u0000`)
	}
	return nil
}
