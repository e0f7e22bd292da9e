package licensing

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var (
	// ErrNotFound means that there is no such store or licence.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the request contradicts what is stored.
	ErrConflict = errors.New("conflict")
	// ErrInvalid means that a value can never be accepted.
	ErrInvalid = errors.New("invalid")
)

// maxText is the largest length of a name, a number or a reason, in characters.
const maxText = 1000

// text trims and checks a value that people typed.
func text(field, value string) (string, error) {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return "", fmt.Errorf("%w: %s is missing", ErrInvalid, field)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "", fmt.Errorf("%w: %s has bytes that are no text", ErrInvalid, field)
	case utf8.RuneCountInString(value) > maxText:
		return "", fmt.Errorf("%w: %s has more than %d characters", ErrInvalid, field, maxText)
	}
	return value, nil
}
