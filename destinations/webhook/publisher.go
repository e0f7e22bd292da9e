// Package webhook publishes events over HTTP: one POST each, signed as Standard Webhooks defines. A receiver
// acknowledges with a 2xx status.
package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/lanes"
)

const (
	// connectTimeout bounds a connection attempt: a receiver that takes longer is unavailable.
	connectTimeout = 5 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 64 << 10
)

// Publisher posts messages to one URL. It is safe for concurrent use.
type Publisher struct {
	config    Config
	target    *url.URL // without user information
	name      string   // what errors call the receiver: nothing of its path and query, which may be secret
	signer    signer
	hide      []string // what must not be quoted from an answer
	lanes     *lanes.Lanes
	dialer    *net.Dialer
	transport *http.Transport
}

// New returns a publisher. It connects at its first use.
func New(config Config) (*Publisher, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	target, err := url.Parse(config.URL)
	if err != nil {
		return nil, errors.New("webhook: the URL is invalid")
	}
	p := &Publisher{config: config, target: target, name: target.Scheme + "://" + target.Host}
	if p.signer, err = newSigner(config.Secrets); err != nil {
		return nil, err
	}
	p.takeUser()
	connect := min(connectTimeout, config.Timeout/2)
	p.dialer = &net.Dialer{Timeout: connect}
	if !config.AllowPrivate {
		p.dialer.Control = refusePrivate
	}
	p.lanes = lanes.New(config.Concurrency, config.Timeout)
	// No proxy: the proxy would connect, past the check of the address.
	p.transport = &http.Transport{
		DialContext: p.dialer.DialContext, TLSClientConfig: config.TLS.Clone(), TLSHandshakeTimeout: connect, ForceAttemptHTTP2: true,
		MaxIdleConns: config.Concurrency, MaxIdleConnsPerHost: config.Concurrency, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes, DisableCompression: true,
	}
	return p, nil
}

// takeUser turns the user information of the URL into basic authentication.
func (p *Publisher) takeUser() {
	if user := p.target.User; user != nil {
		password, _ := user.Password()
		request := http.Request{Header: make(http.Header)}
		request.SetBasicAuth(user.Username(), password)
		p.config.Authorization = request.Header.Get("Authorization")
		p.target.User = nil
		p.hide = append(p.hide, password)
	}
	p.hide = append(p.hide, secretsOf(p.config.Authorization)...)
	p.hide = append(p.hide, p.config.Secrets...)
}

// Publish posts each message, and returns nil for those answered with 2xx. Messages of one key are sent in
// sequence, and none after a failed one.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p.lanes.Publish(ctx, messages, p.send)
}

// KeepsOrder returns true: see Publish.
func (p *Publisher) KeepsOrder() bool { return true }

// Close closes idle connections. Publish leaves nothing to flush.
func (p *Publisher) Close() error {
	p.transport.CloseIdleConnections()
	return nil
}
