// Package sqlname makes names chosen by users safe to write into SQL.
package sqlname

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxIdentifier is PostgreSQL's limit; a longer name would be cut silently and
// then mean another object.
const maxIdentifier = 63

// Problem says what is wrong with a name, or "". Anything else a name may contain is
// made harmless by quoting.
func Problem(name string) string {
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

// Quote makes a checked name an SQL identifier.
func Quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Qualified puts a checked name into a schema; empty for the search path.
func Qualified(schema, name string) string {
	if schema == "" {
		return Quote(name)
	}
	return Quote(schema) + "." + Quote(name)
}

// Literal makes a checked text an SQL string, whatever standard_conforming_strings says.
func Literal(text string) string {
	quoted := `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
	if strings.Contains(text, `\`) {
		return `E` + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
