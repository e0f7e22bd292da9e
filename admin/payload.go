package admin

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"
)

const (
	// maxShown is how much of a payload a page shows; the API returns all of it.
	maxShown = 128 << 10
	// maxDump is how much of a binary payload is shown.
	maxDump = 4 << 10
	// maxParts is how many pieces are coloured: each costs more than its text.
	maxParts = 20_000

	numbers = "-0123456789+.eE"
	letters = "abcdefghijklmnopqrstuvwxyz"
)

// payload is a payload for people to read.
type payload struct {
	// Kind is JSON, text or binary.
	Kind string
	// Size is the size of the whole payload, in bytes.
	Size int64
	// Parts are the shown text, in pieces of one colour.
	Parts []part
	// Cut is set if that is not all.
	Cut bool
}

type part struct{ Class, Text string }

func newPayload(content []byte) payload {
	p := payload{Kind: "binary", Size: int64(len(content))}
	switch {
	case json.Valid(content):
		p.Kind = "JSON"
		var indented bytes.Buffer
		// Indenting can make a deeply nested payload much longer.
		if len(content) <= maxShown && json.Indent(&indented, content, "", "  ") == nil && indented.Len() <= 4*maxShown {
			content = indented.Bytes()
		}
		content, p.Cut = cutBytes(content, 4*maxShown)
		p.Parts = colour(content)
		return p
	case utf8.Valid(content):
		p.Kind = "text"
		content, p.Cut = cutBytes(content, maxShown)
		p.Parts = []part{{"", string(content)}}
		return p
	}
	content, p.Cut = cutBytes(content, maxDump)
	p.Parts = []part{{"", hex.Dump(content)}}
	return p
}

// cutBytes cuts at a limit, but not within a character.
func cutBytes(content []byte, limit int) ([]byte, bool) {
	if len(content) <= limit {
		return content, false
	}
	for limit > 0 && !utf8.RuneStart(content[limit]) {
		limit--
	}
	return content[:limit], true
}

// colour divides JSON into keys, strings, numbers, words and the rest. It is no parser: it keeps all of its input,
// whatever it is.
func colour(content []byte) []part {
	var parts []part
	for len(content) > 0 && len(parts) < maxParts {
		class, n := next(content)
		parts = append(parts, part{class, string(content[:n])})
		content = content[n:]
	}
	if len(content) > 0 {
		parts = append(parts, part{"", string(content)})
	}
	return parts
}

// next returns the class and the length of the first piece of content.
func next(content []byte) (class string, n int) {
	switch first := content[0]; {
	case first == '"':
		n = stringEnd(content)
		if rest := bytes.TrimLeft(content[n:], " \n"); len(rest) > 0 && rest[0] == ':' {
			return "key", n
		}
		return "string", n
	case first == '-' || first >= '0' && first <= '9':
		return "number", spanOf(content, numbers)
	case first >= 'a' && first <= 'z':
		return "word", spanOf(content, letters)
	}
	if n = bytes.IndexAny(content, `"`+numbers+letters); n < 0 {
		n = len(content)
	}
	return "", max(n, 1)
}

// stringEnd returns the length of the string that content begins with.
func stringEnd(content []byte) int {
	for i := 1; i < len(content); i++ {
		switch content[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(content)
}

// spanOf returns how many of the first bytes of content are in a set.
func spanOf(content []byte, set string) int {
	rest := bytes.TrimLeft(content, set)
	return len(content) - len(rest)
}
