package wire

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options are the options of a destination's URL, after its question mark. Ask for each option that the destination
// has; then Err reports all that are unknown or wrong.
type Options struct {
	values url.Values
	known  map[string]bool
	errs   []error
}

// ParseOptions reads the options of a URL.
func ParseOptions(query string) *Options {
	o := &Options{known: make(map[string]bool)}
	values, err := url.ParseQuery(query)
	if err != nil {
		o.errs = append(o.errs, errors.New("the part after the question mark is not written as name=value&name=value"))
	}
	o.values = values
	return o
}

// Has reports whether one of the options is given. It does not count as asking for them.
func (o *Options) Has(names ...string) bool { return slices.ContainsFunc(names, o.values.Has) }

// String returns an option as it is written, or fallback.
func (o *Options) String(name, fallback string) string {
	o.known[name] = true
	if !o.values.Has(name) {
		return fallback
	}
	return o.values.Get(name)
}

// Bool returns a boolean option; false if it is not given.
func (o *Options) Bool(name string) bool {
	value := o.String(name, "false")
	is, err := strconv.ParseBool(value)
	if err != nil {
		o.refuse(name, value, "true or false")
	}
	return is
}

// Int returns an option that is a whole number of at least one.
func (o *Options) Int(name string, fallback int) int {
	value := o.String(name, strconv.Itoa(fallback))
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 && n != fallback {
		o.refuse(name, value, "a whole number above zero")
	}
	return n
}

// Duration returns an option such as 1500ms or 10s, above zero.
func (o *Options) Duration(name string, fallback time.Duration) time.Duration {
	value := o.String(name, fallback.String())
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 && d != fallback {
		o.refuse(name, value, "a time such as 1500ms or 10s")
	}
	return d
}

// Choice returns an option with a fixed set of values; the first is the fallback.
func (o *Options) Choice(name string, choices ...string) string {
	value := o.String(name, choices[0])
	if !slices.Contains(choices, value) {
		o.refuse(name, value, strings.Join(choices, " or "))
	}
	return value
}

// Format returns the format of the options format and source: plain, or cloudevents.
func (o *Options) Format() Format {
	format := Format{CloudEvents: o.Choice("format", "plain", "cloudevents") == "cloudevents", Source: o.String("source", "")}
	if format.Source != "" && !format.CloudEvents {
		o.errs = append(o.errs, errors.New("option source goes with format=cloudevents"))
	}
	return format
}

func (o *Options) refuse(name, value, want string) {
	o.errs = append(o.errs, fmt.Errorf("option %s is %q; it must be %s", name, value, want))
}

// Err reports the options that were not asked for, and those whose value is wrong.
func (o *Options) Err() error {
	known := slices.Sorted(maps.Keys(o.known))
	for _, name := range slices.Sorted(maps.Keys(o.values)) {
		if !o.known[name] {
			o.errs = append(o.errs, fmt.Errorf("there is no option %q (there are %s)", name, strings.Join(known, ", ")))
		}
	}
	return errors.Join(o.errs...)
}
