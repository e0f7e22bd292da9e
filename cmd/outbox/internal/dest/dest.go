// Package dest opens the destinations a relay can publish to, by URL.
package dest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/file"
)

// Destination is a publisher that can be closed.
type Destination interface {
	outbox.Publisher
	io.Closer
}

// Warner is a destination with warnings to show before anything is published, such as how little an acknowledgement
// is worth.
type Warner interface {
	// Warnings returns sentences for the person who starts the relay; topics are the known topics.
	Warnings(ctx context.Context, topics ...string) []string
}

// kind is one kind of destination.
type kind struct {
	// scheme is what its URLs begin with, before the colon.
	scheme string
	// usage is an example URL, and about says in a few words what is there.
	usage, about string
	// check checks a URL and opens nothing.
	check func(to string) error
	// prepare returns the destination, which connects at its first use.
	prepare func(to string, stdout io.Writer) (Destination, error)
}

// kinds returns all destinations: those without a broker, and the brokers'.
func kinds() []kind {
	return append([]kind{
		{"stdout", "stdout:", "JSON Lines on standard output", nothingMore, func(_ string, stdout io.Writer) (Destination, error) { return file.NewWriter(stdout), nil }},
		broker("file", "file:PATH", "JSON Lines appended to a file of its own", file.ParseURL, file.New),
		{"discard", "discard:", "nowhere, for measurements", nothingMore, func(string, io.Writer) (Destination, error) { return discard{}, nil }},
	}, brokers()...)
}

// Usage is one kind of destination, as shown to people.
type Usage struct {
	URL   string `json:"url"`
	About string `json:"about"`
}

// List lists the destinations.
func List() []Usage {
	var list []Usage
	for _, k := range kinds() {
		list = append(list, Usage{k.usage, k.about})
	}
	return list
}

// Names returns the URLs of List in one line.
func Names() string {
	var names []string
	for _, usage := range List() {
		names = append(names, usage.URL)
	}
	return strings.Join(names, ", ")
}

// Open opens a destination. A broker may be unavailable; a file is opened now.
func Open(to string, stdout io.Writer) (Destination, error) {
	destination, err := Prepare(to, stdout)
	if err != nil {
		return nil, err
	}
	if out, ok := destination.(interface{ Open() error }); ok {
		if err := out.Open(); err != nil {
			return nil, err
		}
	}
	return destination, nil
}

// Prepare returns a destination without opening it. It need not exist yet; its ping says what is missing.
func Prepare(to string, stdout io.Writer) (Destination, error) {
	k, err := find(to)
	if err != nil {
		return nil, err
	}
	if err := k.check(to); err != nil {
		return nil, err
	}
	return k.prepare(to, stdout)
}

// Check rejects a destination whose URL Open would reject. It opens nothing.
func Check(to string) error {
	k, err := find(to)
	if err != nil {
		return err
	}
	return k.check(to)
}

func find(to string) (kind, error) {
	// Do not show what was given: it may hold a password.
	scheme, _, found := strings.Cut(to, ":")
	if !found {
		return kind{}, fmt.Errorf("the destination has no scheme; it is one of %s", Names())
	}
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.scheme == scheme })
	if i < 0 {
		return kind{}, fmt.Errorf("there is no destination %s: (there are %s)", scheme, Names())
	}
	return all[i], nil
}

// Name returns a destination as it may be shown: without password and options.
func Name(to string) string {
	parsed, err := url.Parse(to)
	if err != nil {
		scheme, _, _ := strings.Cut(to, ":")
		return scheme + ":"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	if parsed.Scheme == "http" || parsed.Scheme == "https" {
		parsed.Path, parsed.RawPath = "", "" // many webhooks have a secret in their path
	}
	return parsed.String()
}

func nothingMore(to string) error {
	if scheme, rest, _ := strings.Cut(to, ":"); rest != "" {
		return fmt.Errorf("destination %q: %s: takes nothing more", to, scheme)
	}
	return nil
}

// discard accepts everything and keeps nothing.
type discard struct{}

func (discard) Publish(_ context.Context, messages []outbox.Message) []error {
	return make([]error, len(messages))
}

// KeepsOrder is true: nothing fails here.
func (discard) KeepsOrder() bool { return true }

func (discard) Close() error { return nil }
