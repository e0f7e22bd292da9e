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
	scheme, rest, found := strings.Cut(to, ":")
	if !found {
		return nil, fmt.Errorf("destination %q has no scheme, such as file:PATH (or stdout: or discard:)", to)
	}
	switch scheme {
	case "stdout":
		if rest != "" {
			return nil, fmt.Errorf("destination %q: stdout: takes nothing more", to)
		}
		return newLines(stdout, nil), nil
	case "file":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return nil, fmt.Errorf("destination %q has no path; it looks like file:events.jsonl", to)
		}
		file, err := openFile(path)
		if err != nil {
			return nil, err
		}
		return newLines(file, file), nil
	case "discard":
		return discard{}, nil
	default:
		return nil, fmt.Errorf("there is no destination %s: (there are stdout:, discard: and file:PATH)", scheme)
	}
}

// discard takes everything and keeps nothing.
type discard struct{}

func (discard) Publish(_ context.Context, messages []outbox.Message) []error {
	return make([]error, len(messages))
}

// KeepsOrder is true: nothing fails here.
func (discard) KeepsOrder() bool { return true }

func (discard) Close() error { return nil }
