// Package dest opens the destinations a relay can publish to, by URL.
package dest

import (
	"context"
	"fmt"
	"io"
	"net/url"
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

type kind struct {
	// scheme is what its URLs begin with, before the colon.
	scheme string
	// usage is an example URL, and about says in a few words what is there.
	usage, about string
	// parse checks a URL and returns how to make its destination, which connects at its first use.
	parse func(to string) (maker, error)
}

// maker makes a destination. Only stdout: writes to standard output.
type maker func(stdout io.Writer) (Destination, error)

// kinds returns all destinations: those without a broker, and the brokers'.
func kinds() []kind {
	return append([]kind{
		bare("stdout", "JSON Lines on standard output", func(stdout io.Writer) (Destination, error) { return file.NewWriter(stdout), nil }),
		broker("file", "file:PATH", "JSON Lines appended to a file of its own", file.ParseURL, file.New),
		bare("discard", "nowhere, for measurements", func(io.Writer) (Destination, error) { return discard{}, nil }),
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
	create, err := parse(to)
	if err != nil {
		return nil, err
	}
	return create(stdout)
}

// Check rejects a destination whose URL Open would reject. It opens nothing.
func Check(to string) error {
	_, err := parse(to)
	return err
}

// parse finds the kind of a URL and parses it. Its errors do not show what was given, which may hold a password.
func parse(to string) (maker, error) {
	scheme, _, found := strings.Cut(to, ":")
	if !found {
		return nil, fmt.Errorf("the destination has no scheme; it is one of %s", Names())
	}
	for _, k := range kinds() {
		if k.scheme == scheme {
			return k.parse(to)
		}
	}
	return nil, fmt.Errorf("there is no destination %s: (there are %s)", scheme, Names())
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

// bare returns a kind whose URL is only its scheme.
func bare(scheme, about string, create maker) kind {
	return kind{scheme, scheme + ":", about, func(to string) (maker, error) {
		if to != scheme+":" {
			return nil, fmt.Errorf("destination %q: %s: takes nothing more", to, scheme)
		}
		return create, nil
	}}
}

// discard accepts everything and keeps nothing.
type discard struct{}

func (discard) Publish(_ context.Context, messages []outbox.Message) []error {
	return make([]error, len(messages))
}

// KeepsOrder is true: nothing fails here.
func (discard) KeepsOrder() bool { return true }

func (discard) Close() error { return nil }
