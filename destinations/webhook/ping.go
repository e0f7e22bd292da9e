package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Ping connects to the receiver, with TLS where it has it, and sends nothing.
func (p *Publisher) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.dialer.Timeout)
	defer cancel()
	var conn net.Conn
	var err error
	if p.target.Scheme == "https" {
		conn, err = (&tls.Dialer{NetDialer: p.dialer, Config: p.config.TLS}).DialContext(ctx, "tcp", address(p.target))
	} else {
		conn, err = p.dialer.DialContext(ctx, "tcp", address(p.target))
	}
	if err != nil {
		return p.classify(err, false)
	}
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return p.classify(fmt.Errorf("close the connection: %w", err), false)
	}
	return nil
}

func address(target *url.URL) string {
	port := cmp.Or(target.Port(), map[string]string{"http": "80", "https": "443"}[target.Scheme])
	return net.JoinHostPort(target.Hostname(), port)
}
