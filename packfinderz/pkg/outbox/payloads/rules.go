package payloads

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// The rules of the payloads. Each returns nil, or an error that names the field.

// id, text and moment require a field to be set.
func id(name string, value uuid.UUID) error { return present(name, value != uuid.Nil) }

func text(name, value string) error { return present(name, strings.ContainsFunc(value, visible)) }

func moment(name string, value time.Time) error {
	if err := present(name, !value.IsZero()); err != nil {
		return err
	}
	// RFC 3339, and many languages, cannot express other years.
	const last = 9999
	if year := value.UTC().Year(); year < 1 || year > last {
		return fmt.Errorf("%s is in the year %d; it must be between 1 and %d", name, year, last)
	}
	return nil
}

// visible reports whether a person sees the character: it is neither a space nor a formatting character.
func visible(r rune) bool {
	const blankBraille = '\u2800' // a symbol of no dots
	return r != blankBraille && unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

func present(name string, set bool) error {
	if !set {
		return fmt.Errorf("%s is missing", name)
	}
	return nil
}

// oneOf requires one of an enum's values.
func oneOf[T ~string](name string, value T, values ...T) error {
	if !slices.Contains(values, value) {
		return fmt.Errorf("%s is %q; it can be one of %q", name, value, values)
	}
	return nil
}

// amount requires a positive number.
func amount(name string, cents int64) error {
	if cents <= 0 {
		return fmt.Errorf("%s is %d; it must be more than 0", name, cents)
	}
	return nil
}

// count requires a number that is not negative.
func count(name string, n int64) error {
	if n < 0 {
		return fmt.Errorf("%s is %d; it cannot be negative", name, n)
	}
	return nil
}

// currency requires an ISO 4217 code.
func currency(code string) error {
	if len(code) != 3 || strings.ContainsFunc(code, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return fmt.Errorf("currency is %q; it must be a code such as USD", code)
	}
	return nil
}

// changed requires two different states.
func changed[T ~string](from, to T) error {
	if from != "" && from == to {
		return fmt.Errorf("from and to are both %q", to)
	}
	return errors.Join(text("from", string(from)), text("to", string(to)))
}

// each applies a rule to the elements of a list, which must not be empty.
func each[T any](name string, list []T, rule func(T) error) error {
	if len(list) == 0 {
		return fmt.Errorf("%s is empty", name)
	}
	var errs []error
	for i, element := range list {
		if err := rule(element); err != nil {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", name, i, err))
		}
	}
	return errors.Join(errs...)
}
