// Package jsoncheck decides, before a statement is sent, whether PostgreSQL will
// take a JSON document. A document the server refuses would abort the caller's
// whole business transaction, so every rule of the server's json and jsonb
// parsers that encoding/json does not share is checked here.
//
// It is a scanner of its own because every event passes through it: one pass finds
// what would take encoding/json's and several more.
package jsoncheck

import (
	"encoding/binary"
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

var (
	errUTF8      = errors.New("is not valid UTF-8")
	errNUL       = errors.New(`contains U+0000 (\u0000), which PostgreSQL cannot store`)
	errSurrogate = errors.New("contains half of a surrogate pair")
	errDepth     = fmt.Errorf("is nested deeper than %d levels", MaxDepth)
	errNumber    = fmt.Errorf("has a number too large to store (more than %d digits, or an exponent beyond ±%d)", MaxDigits, MaxExponent)
)

// Check reports why PostgreSQL, or a consumer, would not take doc, or nil. expanded is
// the length of doc once its numbers are written without exponents, which is how jsonb
// gives them back.
func Check(doc []byte) (expanded int, err error) {
	// encoding/json accepts invalid UTF-8 and replaces it; the server refuses it.
	if !utf8.Valid(doc) {
		return 0, errUTF8
	}
	s := scanner{doc: doc, expanded: len(doc)}
	if err := s.document(); err != nil {
		return 0, err
	}
	return s.expanded, nil
}

// scanner walks over one document. At is the next byte.
type scanner struct {
	doc      []byte
	at       int
	expanded int
	depth    int
	// object says for each level whether it is an object or an array.
	object [MaxDepth]bool
}

// document is one value with nothing after it. It does not call itself for what is
// nested: hostile nesting must not use up the stack.
func (s *scanner) document() error {
	for {
		opened, err := s.value()
		if err != nil {
			return err
		}
		if opened {
			continue // the value is inside
		}
		more, err := s.afterValue()
		if err != nil || !more {
			return err
		}
	}
}

// value reads a value, or the beginning of one that has something inside.
func (s *scanner) value() (opened bool, err error) {
	switch c := s.peek(); {
	case c == '"':
		return false, s.text()
	case c == '-' || isDigit(c):
		return false, s.number()
	case c == '{' || c == '[':
		if s.depth == MaxDepth {
			return false, errDepth
		}
		s.at++
		s.object[s.depth] = c == '{'
		s.depth++
		if end := s.peek(); end == c+2 { // '}' and ']' follow their openers by two
			return false, nil
		}
		if c == '{' {
			return true, s.key()
		}
		return true, nil
	case c == 't':
		return false, s.word("true")
	case c == 'f':
		return false, s.word("false")
	case c == 'n':
		return false, s.word("null")
	}
	return false, ErrSyntax
}

// afterValue closes what ends here. It reports whether another value follows.
func (s *scanner) afterValue() (more bool, err error) {
	for s.depth > 0 {
		object := s.object[s.depth-1]
		switch c := s.peek(); {
		case c == '}' && object, c == ']' && !object:
			s.at++
			s.depth--
		case c == ',' && object:
			s.at++
			return true, s.key()
		case c == ',':
			s.at++
			return true, nil
		default:
			return false, ErrSyntax
		}
	}
	if s.skip(); s.at < len(s.doc) {
		return false, ErrSyntax
	}
	return false, nil
}

// key reads the name of an object's member and the colon.
func (s *scanner) key() error {
	if s.peek() != '"' {
		return ErrSyntax
	}
	if err := s.text(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return ErrSyntax
	}
	s.at++
	return nil
}

// skip passes over white space.
func (s *scanner) skip() {
	for s.at < len(s.doc) {
		switch s.doc[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	s.skip()
	if s.at == len(s.doc) {
		return 0
	}
	return s.doc[s.at]
}

func (s *scanner) word(word string) error {
	end := s.at + len(word)
	if end > len(s.doc) || string(s.doc[s.at:end]) != word {
		return ErrSyntax
	}
	s.at = end
	return nil
}

// text reads a string, from quote to quote.
func (s *scanner) text() error {
	for i := s.at + 1; i < len(s.doc); i++ {
		for i+8 < len(s.doc) && isPlain(binary.LittleEndian.Uint64(s.doc[i:])) {
			i += 8
		}
		switch c := s.doc[i]; {
		case c == '"':
			s.at = i + 1
			return nil
		case c < ' ':
			return ErrSyntax
		case c == '\\':
			n, err := escape(s.doc[i:])
			if err != nil {
				return err
			}
			i += n - 1
		}
	}
	return ErrSyntax
}

// isPlain reports whether none of eight bytes of a string means anything: no quote, no
// backslash, no control character. Most of a document is such text.
func isPlain(bytes uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	// x - each borrows from the highest bit of a byte that is zero, and x - ' '*each of one
	// that is a control character, unless that bit was set before.
	quote, backslash := bytes^'"'*each, bytes^'\\'*each
	return ((bytes-' '*each)&^bytes|(quote-each)&^quote|(backslash-each)&^backslash)&high == 0
}

// escape is the length of the escape at the start of s. Refused are the two kinds of \u
// that jsonb refuses: U+0000, which text cannot hold, and half a surrogate pair.
func escape(s []byte) (int, error) {
	if len(s) < 2 {
		return 0, ErrSyntax
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
	default:
		return 0, ErrSyntax
	}
	unit, ok := hexUnit(s)
	switch {
	case !ok:
		return 0, ErrSyntax
	case unit == 0:
		return 0, errNUL
	case unit < 0xD800 || unit > 0xDFFF:
		return 6, nil
	case unit > 0xDBFF:
		return 0, errSurrogate
	}
	if low, ok := hexUnit(s[6:]); !ok || low < 0xDC00 || low > 0xDFFF {
		return 0, errSurrogate
	}
	return 12, nil
}

// hexUnit reads the \u and its four hex digits at the start of s.
func hexUnit(s []byte) (unit uint64, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return unit, err == nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a number, with its limits, and adds what jsonb makes of its exponent.
func (s *scanner) number() error {
	if s.doc[s.at] == '-' {
		s.at++
	}
	whole, fraction := s.digits(), 0
	if whole == 0 || whole > 1 && s.doc[s.at-whole] == '0' {
		return ErrSyntax
	}
	if s.at < len(s.doc) && s.doc[s.at] == '.' {
		s.at++
		if fraction = s.digits(); fraction == 0 {
			return ErrSyntax
		}
	}
	if whole+fraction > MaxDigits {
		return errNumber
	}
	if s.at == len(s.doc) || s.doc[s.at] != 'e' && s.doc[s.at] != 'E' {
		return nil
	}
	s.at++
	sign := s.at
	if s.at < len(s.doc) && (s.doc[s.at] == '+' || s.doc[s.at] == '-') {
		s.at++
	}
	if s.digits() == 0 {
		return ErrSyntax
	}
	exponent, err := strconv.Atoi(string(s.doc[sign:s.at]))
	if err != nil {
		exponent = math.MaxInt32 // out of range for an int: out of range for us too
	}
	exponent = max(exponent, -exponent)
	if exponent > MaxExponent {
		return errNumber
	}
	s.expanded += exponent
	return nil
}

// digits passes over digits and counts them.
func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.doc) && isDigit(s.doc[s.at]) {
		s.at++
	}
	return s.at - start
}
