package file

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as file:events.jsonl?append=true. file://PATH is the same.
func ParseURL(raw string) (Config, error) {
	path, query, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(raw, "file:"), "//"), "?")
	options := wire.ParseOptions(query)
	config := Config{Path: path, Append: options.Bool("append")}
	if err := options.Err(); err != nil {
		return Config{}, fmt.Errorf("file: %w", err)
	}
	return config, config.validate()
}
