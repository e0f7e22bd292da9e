// Package env reads a program's configuration from the environment. It reports all wrong values at once, each with the
// name of its variable.
package env

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"
)

// Reader reads variables and collects what is wrong with them.
type Reader struct {
	lookup func(string) (string, bool)
	errs   []error
}

// NewReader returns a reader; lookup is os.LookupEnv, or a test's own.
func NewReader(lookup func(string) (string, bool)) *Reader { return &Reader{lookup: lookup} }

// ErrUsage means that the person who started the program has to correct something.
var ErrUsage = errors.New("wrong use")

// Err returns everything that was wrong, as an ErrUsage, or nil.
func (r *Reader) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUsage, errors.Join(r.errs...))
}

// Refuse reports a problem with a variable's value.
func (r *Reader) Refuse(name, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s %s", name, fmt.Sprintf(format, args...)))
}

// First returns the first variable that is set, and its value; if none is set, the first name and no value. An empty
// value counts as not set, because .env files have lines to be filled in.
func (r *Reader) First(names ...string) (name, value string) {
	for _, name := range names {
		if value, ok := r.lookup(name); ok && value != "" {
			return name, value
		}
	}
	return names[0], ""
}

// Text returns the value of the first variable that is set, or the fallback.
func (r *Reader) Text(fallback string, names ...string) string {
	if _, value := r.First(names...); value != "" {
		return value
	}
	return fallback
}

// Needed is Text for a variable without a default.
func (r *Reader) Needed(names ...string) string {
	value := r.Text("", names...)
	if value == "" {
		r.Refuse(names[0], "is not set")
	}
	return value
}

// Int reads a whole number from low to high.
func (r *Reader) Int(name string, fallback, low, high int) int {
	value := r.Text("", name)
	if value == "" {
		return fallback
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		r.Refuse(name, "is %q; it must be a whole number from %d to %d", value, low, high)
		return fallback
	}
	return n
}

// Bool reads true or false; the default is false.
func (r *Reader) Bool(name string) bool {
	value := r.Text("false", name)
	if value != "true" && value != "false" {
		r.Refuse(name, "is %q; it must be true or false", value)
	}
	return value == "true"
}

// Endless is the upper bound of a time without one.
const Endless time.Duration = math.MaxInt64

// Duration reads a time such as 720h, from low to high.
func (r *Reader) Duration(name string, fallback, low, high time.Duration) time.Duration {
	value := r.Text("", name)
	if value == "" {
		return fallback
	}
	d, err := time.ParseDuration(value)
	switch {
	case err == nil && d >= low && d <= high:
		return d
	case high == Endless:
		r.Refuse(name, "is %q; it must be a time such as 720h or 90s, of %s or more", value, low)
	default:
		r.Refuse(name, "is %q; it must be a time such as 90s, from %s to %s", value, low, high)
	}
	return fallback
}

// Listen reads the address to listen on. The default is Heroku's PORT on all addresses, or else the fallback. The host
// may be empty.
func (r *Reader) Listen(fallback, name string) string {
	const highest = 65_535
	if port := r.Int("PORT", 0, 1, highest); port != 0 {
		fallback = ":" + strconv.Itoa(port)
	}
	value := r.Text(fallback, name)
	if _, _, ok := SplitAddress(value); !ok {
		r.Refuse(name, "is %q; it must be an address such as :8080, with a port up to %d", value, highest)
	}
	return value
}

// SplitAddress splits host:port; ok is false for anything else.
func SplitAddress(address string) (host string, port uint16, ok bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, false
	}
	number, err := strconv.ParseUint(text, 10, 16)
	return host, uint16(number), err == nil
}
