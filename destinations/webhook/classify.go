package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packfinderz/outbox"
)

// classify sorts the failure of a request without a complete answer. Only an answer can be about
// an event, so that none of these is retryable. Whoever cannot be connected to, breaks the
// connection or does not speak HTTP is away. Whoever takes the request and does not answer in time
// may be slow because of this very event.
func (p *Publisher) classify(err error, connected bool) error {
	var private *privateError
	var timeout net.Error
	switch {
	case errors.As(err, &private):
		return outbox.Misconfigured(fmt.Errorf("%s: %w", p.name, private))
	case !connected:
		return outbox.Unavailable(fmt.Errorf("%s cannot be reached: %w", p.name, err))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s did not answer in time: %w", p.name, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled): // nobody waits for the answer any more
		return fmt.Errorf("post to %s: %w", p.name, err)
	case errors.Is(err, io.EOF), outbox.Classify(err) == outbox.ClassUnavailable:
		return outbox.Broken(fmt.Errorf("the connection to %s broke: %w", p.name, err))
	}
	return outbox.Broken(fmt.Errorf("%s gave no complete HTTP answer: %w", p.name, err))
}

// isOfEvent reports whether an answer is held against the event.
func isOfEvent(err error) bool {
	class := outbox.Classify(err)
	return err != nil && (class == outbox.ClassRetryable || class == outbox.ClassTerminal)
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
	if delay := retryAfter(response.Header.Get("Retry-After"), now); delay > 0 {
		err = outbox.RetryAfter(err, delay)
	}
	switch {
	case slices.Contains(p.config.Terminal, status):
		return outbox.Rejected(err)
	case isReceivers(status):
		return outbox.Unavailable(err)
	case isUnclear(status), status == http.StatusBadRequest && wrongTLS.MatchString(excerpt):
		return outbox.Unclear(err)
	}
	return err
}

// wrongTLS is how servers call it, with 400, that somebody speaks plain HTTP on their port for HTTPS, or has
// no certificate, or one that has expired or was revoked.
var wrongTLS = regexp.MustCompile(`(?i)plain HTTP .*(HTTPS|SSL)|HTTP request to an HTTPS server|The SSL certificate error|No required SSL certificate`)

// bandwidthLimitExceeded is what web hosts answer whose customer has used his traffic up.
const bandwidthLimitExceeded = 509

// isReceivers reports whether a status is about the receiver, or something on the way to it,
// and not about the message: too many requests, down for a while, a gateway without a server
// behind it, a disk that is full, a network that wants a login first.
func isReceivers(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusNetworkAuthenticationRequired, http.StatusInsufficientStorage, http.StatusLoopDetected, bandwidthLimitExceeded:
		return true
	}
	return status >= 520 && status <= 530 // what gateways say of servers that they cannot reach
}

// isUnclear reports whether a status may mean that the receiver does not want this message, or
// that the URL or the credentials are wrong, or that it has seen only a part of the request.
func isUnclear(status int) bool {
	switch status {
	case 495, 496, 497: // nginx, of the client's certificate, and of plain HTTP on a port for HTTPS
		return true
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusGone, http.StatusMisdirectedRequest,
		http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return status < 400 // a redirect, which is not followed
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
