// Package jsoncheck decides, before a statement is sent, whether PostgreSQL will
// take a JSON document. A document the server refuses would abort the caller's
// whole business transaction, so every rule of the server's json and jsonb
// parsers that encoding/json does not share is checked here.
package jsoncheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

const (
	// MaxDepth is the deepest nesting accepted. PostgreSQL's own limit depends on
	// its stack size (about 10,000 by default); consumers often stop earlier.
	MaxDepth = 1000
	// MaxExponent bounds a number's exponent. float64 ends at 308; jsonb would go
	// on to 131,071 and write every digit out when the payload is read back, so
	// that eight bytes become 128 KiB.
	MaxExponent = 400
	// MaxDigits bounds the digits of one number, well inside numeric's limits.
	MaxDigits = 1000
)

// ErrSyntax is reported for a document that is not JSON at all.
var ErrSyntax = errors.New("is not valid JSON")

// Check reports why PostgreSQL, or a consumer, would not take doc, or nil.
func Check(doc []byte) error {
	// encoding/json accepts invalid UTF-8 and replaces it; the server refuses it.
	if !utf8.Valid(doc) {
		return errors.New("is not valid UTF-8")
	}
	if !json.Valid(doc) {
		if nesting(doc) > MaxDepth {
			return tooDeep()
		}
		return ErrSyntax
	}
	return walk(doc)
}

// Expanded is the length of doc once its numbers are written without exponents,
// which is how jsonb gives them back. doc must have passed Check.
func Expanded(doc []byte) int {
	size := len(doc)
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			i = stringEnd(doc, i)
		case isNumberStart(c):
			end := numberEnd(doc, i)
			_, exponent := numberShape(doc[i:end])
			size += max(exponent, -exponent)
			i = end
		default:
			i++
		}
	}
	return size
}

// walk checks what validity alone does not: it relies on doc being well formed.
func walk(doc []byte) error {
	depth := 0
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return tooDeep()
			}
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case c == '"':
			end := stringEnd(doc, i)
			if err := checkEscapes(doc[i:end]); err != nil {
				return err
			}
			i = end
		case isNumberStart(c):
			end := numberEnd(doc, i)
			digits, exponent := numberShape(doc[i:end])
			if digits > MaxDigits || exponent > MaxExponent || exponent < -MaxExponent {
				return fmt.Errorf("has a number too large to store (more than %d digits, or an exponent beyond ±%d)",
					MaxDigits, MaxExponent)
			}
			i = end
		default:
			i++
		}
	}
	return nil
}

func tooDeep() error {
	return fmt.Errorf("is nested deeper than %d levels", MaxDepth)
}

// nesting is the depth of a document that json.Valid refused; encoding/json gives
// up at 10,000 levels, and "not valid JSON" would mislead.
func nesting(doc []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(doc); {
		switch doc[i] {
		case '"':
			i = stringEnd(doc, i)
			continue
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
		i++
	}
	return deepest
}

// stringEnd is the index after the string that opens at doc[start].
func stringEnd(doc []byte, start int) int {
	for i := start + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

// checkEscapes refuses the two kinds of \u escape that jsonb refuses: U+0000,
// which text cannot hold, and half a surrogate pair.
func checkEscapes(s []byte) error {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if s[i] != 'u' {
			continue
		}
		switch unit := hexUnit(s[i+1:]); {
		case unit == 0:
			return errors.New(`contains U+0000 (\u0000), which PostgreSQL cannot store`)
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return errors.New("contains half of a surrogate pair")
		case unit >= 0xD800 && unit <= 0xDBFF:
			rest := s[i+5:]
			if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
				return errors.New("contains half of a surrogate pair")
			}
			if low := hexUnit(rest[2:]); low < 0xDC00 || low > 0xDFFF {
				return errors.New("contains half of a surrogate pair")
			}
			i += 6
		}
		i += 4
	}
	return nil
}

// hexUnit reads the four hex digits of a \u escape; the document is well formed.
func hexUnit(s []byte) uint64 {
	unit, err := strconv.ParseUint(string(s[:4]), 16, 16)
	if err != nil {
		return 0
	}
	return unit
}

func isNumberStart(c byte) bool { return c == '-' || (c >= '0' && c <= '9') }

func numberEnd(doc []byte, start int) int {
	i := start
	for i < len(doc) {
		c := doc[i]
		if !isNumberStart(c) && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		i++
	}
	return i
}

// numberShape counts a number's digits and reads its exponent.
func numberShape(num []byte) (digits, exponent int) {
	for i, c := range num {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == 'e' || c == 'E':
			e, err := strconv.Atoi(string(num[i+1:]))
			if err != nil {
				// Out of range for an int: out of range for us too.
				return digits, math.MaxInt32
			}
			return digits, e
		}
	}
	return digits, 0
}
