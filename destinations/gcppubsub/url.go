package gcppubsub

import (
	"errors"
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// Scheme is how a URL of this destination begins.
const Scheme = "gcppubsub"

// ParseURL reads a destination such as
//
//	gcppubsub://PROJECT
//	gcppubsub://PROJECT?endpoint=127.0.0.1:8085&insecure=true
//
// with the options create, credentials, endpoint, format, insecure, ordering and source.
func ParseURL(raw string) (Config, error) {
	// A project can have a colon in it, which url.Parse takes for a port.
	rest, found := strings.CutPrefix(raw, Scheme+"://")
	if !found {
		return Config{}, errors.New("a Pub/Sub destination looks like gcppubsub://PROJECT")
	}
	project, query, _ := strings.Cut(rest, "?")
	options := wire.ParseOptions(query)
	config := Config{
		Project:     strings.TrimSuffix(project, "/"),
		Endpoint:    options.String("endpoint", ""),
		Insecure:    options.Bool("insecure"),
		Credentials: options.String("credentials", ""),
		Unordered:   options.Choice("ordering", "true", "false") == "false",
		Create:      options.Bool("create"),
		Format:      options.Format(),
	}
	if err := errors.Join(options.Err(), config.validate()); err != nil {
		return Config{}, fmt.Errorf("destination %s:// : %w", Scheme, err)
	}
	return config, nil
}
