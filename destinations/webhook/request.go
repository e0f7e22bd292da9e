package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/packfinderz/outbox"
)

const (
	// maxAnswer is how much of an answer is read: enough to use most connections again.
	maxAnswer = 64 << 10
	// maxExcerpt is how many characters of it an error quotes.
	maxExcerpt = 200
)

// send posts one message.
func (p *Publisher) send(ctx context.Context, message *outbox.Message) error {
	bounded, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	// Connecting fails for other reasons than answering. A request on a connection that turns out to be closed is
	// sent again on another, so this can change back and forth.
	var connected atomic.Bool
	bounded = httptrace.WithClientTrace(bounded, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := p.request(bounded, message)
	if err != nil {
		return err
	}
	// Not a client, which would follow redirects and put the URL into its errors.
	response, err := p.transport.RoundTrip(request)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled) && !connected.Load():
		return outbox.ErrNotAttempted
	case err != nil:
		return p.classify(err, connected.Load())
	}
	answer, cut := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	err = p.judge(response, p.excerpt(answer), time.Now())
	if cut != nil && isOfEvent(err) {
		// A status of 2xx is an acknowledgement as soon as it arrives. An answer that counts against an event must
		// be complete: a dying server may still have written a status.
		return p.classify(fmt.Errorf("%s; the rest of the answer: %w", outbox.ErrorText(err), cut), true)
	}
	return err
}

func (p *Publisher) request(ctx context.Context, message *outbox.Message) (*http.Request, error) {
	header, err := p.header(message, time.Now())
	if err != nil {
		return nil, err
	}
	// A copy: the transport may still be reading when it has given up.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target.String(), bytes.NewReader(bytes.Clone(message.Payload)))
	if err != nil {
		return nil, outbox.Misconfigured(fmt.Errorf("make the request to %s: %w", p.name, err))
	}
	request.Header = header
	if header.Get("Idempotency-Key") == "" {
		// An empty header is not sent. It lets the transport repeat the request if the receiver had closed an idle
		// connection; the id tells the receiver that it is the same.
		request.Header["Idempotency-Key"] = []string{}
	}
	return request, nil
}

// excerpt returns the beginning of an answer, in one line, without our secrets.
func (p *Publisher) excerpt(answer []byte) string {
	text := strings.ToValidUTF8(string(answer), "\uFFFD")
	for _, secret := range p.hide {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		} else if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxExcerpt {
		text = string(runes[:maxExcerpt]) + "…"
	}
	return text
}

// secretsOf returns the parts of an Authorization that an answer might repeat.
func secretsOf(authorization string) []string {
	_, credentials, _ := strings.Cut(authorization, " ")
	decoded, err := base64.StdEncoding.DecodeString(credentials)
	if err != nil {
		decoded = nil
	}
	return []string{authorization, credentials, string(decoded)}
}
