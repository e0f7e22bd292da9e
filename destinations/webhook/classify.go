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

// classify marks the error of a request without a complete answer. Only an answer can concern an event, so none of
// these is retryable. A receiver that cannot be reached, breaks the connection or does not speak HTTP is unavailable.
// One that does not answer in time may be slow because of this very event.
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
	case errors.Is(err, context.Canceled): // the caller stopped waiting
		return fmt.Errorf("post to %s: %w", p.name, err)
	case errors.Is(err, io.EOF), outbox.Classify(err) == outbox.ClassUnavailable:
		return outbox.Broken(fmt.Errorf("the connection to %s broke: %w", p.name, err))
	}
	return outbox.Broken(fmt.Errorf("%s gave no complete HTTP answer: %w", p.name, err))
}

// isOfEvent reports whether an answer counts against the event.
func isOfEvent(err error) bool {
	class := outbox.Classify(err)
	return err != nil && (class == outbox.ClassRetryable || class == outbox.ClassTerminal)
}

// judge interprets an answer by its status.
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

// wrongTLS matches the text of a 400 that concerns TLS: plain HTTP on an HTTPS port, or a client certificate that
// is missing, expired or revoked.
var wrongTLS = regexp.MustCompile(`(?i)plain HTTP .*(HTTPS|SSL)|HTTP request to an HTTPS server|The SSL certificate error|No required SSL certificate`)

// bandwidthLimitExceeded is the answer of a web host whose customer has used up their traffic.
const bandwidthLimitExceeded = 509

// isReceivers reports whether a status concerns the receiver, or something on the way to it, and not the message:
// too many requests, down for a while, a gateway without a server behind it, a full disk, a network that wants a
// login first.
func isReceivers(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusNetworkAuthenticationRequired, http.StatusInsufficientStorage, http.StatusLoopDetected, bandwidthLimitExceeded:
		return true
	}
	return status >= 520 && status <= 530 // gateways that cannot reach their server
}

// isUnclear reports whether a status may mean that the receiver does not want this message, that the URL or the
// credentials are wrong, or that the receiver saw only a part of the request.
func isUnclear(status int) bool {
	switch status {
	case 495, 496, 497: // nginx: the client's certificate, or plain HTTP on an HTTPS port
		return true
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusGone, http.StatusMisdirectedRequest,
		http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return status < 400 // a redirect, which is not followed
}

// retryAfter parses a Retry-After header: seconds, or a date. Zero for none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), math.MaxInt64/int64(time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
