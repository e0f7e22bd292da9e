package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/packfinderz/outbox"
)

// classify sorts the failure of a request that was not answered. Whoever cannot be connected
// to, or breaks the connection, is away. Whoever takes the request and does not answer in
// time may be slow because of this very event.
func (p *Publisher) classify(err error, connected bool) error {
	var private *privateError
	var timeout net.Error
	switch {
	case errors.As(err, &private):
		// Not the event's fault, but waiting for the receiver to come back would not help: the
		// event fails visibly and its attempts give time to set it right. The dial error around
		// it would pass for an absent receiver.
		return fmt.Errorf("%s: %w", p.name, private)
	case !connected:
		return outbox.Unavailable(fmt.Errorf("%s cannot be reached: %w", p.name, err))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s did not answer in time: %w", p.name, context.DeadlineExceeded)
	case errors.Is(err, io.EOF), outbox.Classify(err) == outbox.ClassUnavailable:
		return outbox.Unavailable(fmt.Errorf("the connection to %s broke: %w", p.name, err))
	}
	return fmt.Errorf("post to %s: %w", p.name, err)
}

// judge sorts an answer by its status.
func (p *Publisher) judge(response *http.Response, excerpt string, now time.Time) error {
	status := response.StatusCode
	if status >= 200 && status <= 299 {
		return nil
	}
	text := strings.TrimSpace(fmt.Sprintf("%s answered %d %s", p.name, status, http.StatusText(status)))
	if location, err := response.Location(); err == nil && status >= 300 && status <= 399 {
		text += fmt.Sprintf(" to %s://%s; redirects are not followed", location.Scheme, location.Host)
	}
	if excerpt != "" {
		text += ": " + excerpt
	}
	err := errors.New(text)
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
	case status >= 400 && status <= 499:
		return outbox.Rejected(err)
	}
	if delay := retryAfter(response.Header.Get("Retry-After"), now); delay > 0 {
		return outbox.RetryAfter(err, delay)
	}
	return err
}

// retryAfter reads the header of that name: seconds, or a date. Zero is none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), math.MaxInt64/int64(time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
