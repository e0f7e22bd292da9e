// Package dest opens the destinations a relay can publish to, by URL.
package dest

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/packfinderz/outbox"
)

// Destination is a publisher that can be closed.
type Destination interface {
	outbox.Publisher
	io.Closer
}

// Open opens a destination:
//
//	stdout:      JSON Lines on standard output
//	file:PATH    JSON Lines appended to a file
//	discard:     nowhere, for measurements
func Open(to string, stdout io.Writer) (Destination, error) {
	scheme, rest, err := parse(to)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "stdout":
		return newLines(stdout, nil), nil
	case "file":
		file, err := openFile(rest)
		if err != nil {
			return nil, err
		}
		return newLines(file, file), nil
	default:
		return discard{}, nil
	}
}

// Check refuses a destination that Open does not know. It opens nothing.
func Check(to string) error {
	_, _, err := parse(to)
	return err
}

func parse(to string) (scheme, rest string, err error) {
	scheme, rest, found := strings.Cut(to, ":")
	if !found {
		return "", "", fmt.Errorf("destination %q has no scheme, such as file:PATH (or stdout: or discard:)", to)
	}
	switch scheme {
	case "stdout", "discard":
		if rest != "" {
			return "", "", fmt.Errorf("destination %q: %s: takes nothing more", to, scheme)
		}
	case "file":
		if rest = strings.TrimPrefix(rest, "//"); rest == "" {
			return "", "", fmt.Errorf("destination %q has no path; it looks like file:events.jsonl", to)
		}
	default:
		return "", "", fmt.Errorf("there is no destination %s: (there are stdout:, discard: and file:PATH)", scheme)
	}
	return scheme, rest, nil
}

// discard takes everything and keeps nothing.
type discard struct{}

func (discard) Publish(_ context.Context, messages []outbox.Message) []error {
	return make([]error, len(messages))
}

// KeepsOrder is true: nothing fails here.
func (discard) KeepsOrder() bool { return true }

func (discard) Close() error { return nil }
