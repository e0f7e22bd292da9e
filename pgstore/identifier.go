package pgstore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxIdentifier is PostgreSQL's limit; a longer name would be cut silently and
// then mean another object.
const maxIdentifier = 63

// checkIdentifier says what is wrong with a name, or "". Anything else a name may
// contain is made harmless by quoting.
func checkIdentifier(name string) string {
	switch {
	case name == "":
		return "is empty"
	case strings.IndexByte(name, 0) >= 0:
		return "contains a NUL byte"
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case len(name) > maxIdentifier:
		return fmt.Sprintf("has %d bytes; PostgreSQL cuts names at %d", len(name), maxIdentifier)
	}
	return ""
}

// quote makes a checked name an SQL identifier.
func quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// literal makes a checked text an SQL string, whatever standard_conforming_strings says.
func literal(text string) string {
	quoted := `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
	if strings.Contains(text, `\`) {
		return `E` + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// qualified puts a checked name into the layout's schema.
func (l *Layout) qualified(name string) string {
	if l.Schema == "" {
		return quote(name)
	}
	return quote(l.Schema) + "." + quote(name)
}
