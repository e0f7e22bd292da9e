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
	// ErrConflict means that the request does not go with what is there.
	ErrConflict = errors.New("conflict")
	// ErrInvalid means that a value can never be accepted.
	ErrInvalid = errors.New("invalid")
)

// maxText is how many characters a name, a number or a reason may have.
const maxText = 1000

// text checks a value that people typed, without the space around it.
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
