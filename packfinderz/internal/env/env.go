// Package env reads a program's configuration from the environment. A value that makes no sense is
// refused with the name of its variable, and all of them at once: whoever deploys should not have to
// find them one by one.
package env

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Reader reads variables and remembers what was wrong with them.
type Reader struct {
	lookup func(string) (string, bool)
	errs   []error
}

// NewReader makes a reader; lookup is os.LookupEnv, or a test's own.
func NewReader(lookup func(string) (string, bool)) *Reader { return &Reader{lookup: lookup} }

// ErrUsage is what whoever started the program has to mend.
var ErrUsage = errors.New("wrong use")

// Err is what was wrong, as an ErrUsage, or nil.
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

// Text is the value of the first variable that has one, or the fallback. An empty value is none, as in
// every .env file that leaves a line to be filled in.
func (r *Reader) Text(fallback string, names ...string) string {
	for _, name := range names {
		if value, ok := r.lookup(name); ok && value != "" {
			return value
		}
	}
	return fallback
}

// Needed is as Text, for what has no default.
func (r *Reader) Needed(names ...string) string {
	value := r.Text("", names...)
	if value == "" {
		r.Refuse(names[0], "is not set")
	}
	return value
}

// Int is a whole number from low to high.
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

// Bool is true or false, and false unless it is set.
func (r *Reader) Bool(name string) bool {
	value := r.Text("false", name)
	if value != "true" && value != "false" {
		r.Refuse(name, "is %q; it must be true or false", value)
	}
	return value == "true"
}

// Duration is a time such as 720h, from low on.
func (r *Reader) Duration(name string, fallback, low time.Duration) time.Duration {
	value := r.Text("", name)
	if value == "" {
		return fallback
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < low {
		r.Refuse(name, "is %q; it must be a time such as 720h or 90s, of %s or more", value, low)
		return fallback
	}
	return d
}

// Listen is the address to listen on: that of a variable, or any at Heroku's PORT, or the fallback.
func (r *Reader) Listen(fallback, name string) string {
	const highest = 65_535
	if port := r.Int("PORT", 0, 1, highest); port != 0 {
		fallback = ":" + strconv.Itoa(port)
	}
	return r.Address(fallback, name)
}

// Address is a host and port to listen on; the host may be empty.
func (r *Reader) Address(fallback, name string) string {
	value := r.Text(fallback, name)
	if _, _, err := net.SplitHostPort(value); err != nil {
		r.Refuse(name, "is %q; it must be an address such as :8080", value)
	}
	return value
}
