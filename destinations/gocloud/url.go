package gocloud

import (
	"errors"
	"net/url"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as
//
//	awssns:///arn:aws:sns:eu-west-1:123456789012:orders?region=eu-west-1
//	awssqs://sqs.eu-west-1.amazonaws.com/123456789012/{topic}.fifo?region=eu-west-1
//	azuresb://orders
//	mem://orders
//
// The options format and source are read here; all others are the driver's.
func ParseURL(raw string) (Config, error) {
	place, query, _ := strings.Cut(raw, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Config{}, errors.New("the part after the question mark is not written as name=value&name=value")
	}
	own := make(url.Values)
	for _, name := range []string{"format", "source"} {
		if values.Has(name) {
			own[name] = values[name]
			values.Del(name)
		}
	}
	options := wire.ParseOptions(own.Encode())
	config := Config{URL: place, Format: options.Format()}
	if len(values) > 0 {
		config.URL += "?" + values.Encode()
	}
	if err := options.Err(); err != nil {
		return Config{}, err
	}
	return config, config.validate()
}
