package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TLS is what ca, cert and key say, each the name of a PEM file: the authorities to trust
// instead of the system's, and the client's own certificate with its key. It is nil, after a
// complaint if any of the three was given, unless the connection is secure.
func (o *Options) TLS(secure bool) *tls.Config {
	ca, cert, key := o.String("ca", ""), o.String("cert", ""), o.String("key", "")
	if !secure {
		if ca+cert+key != "" {
			o.errs = append(o.errs, errors.New("options ca, cert and key go with a connection over TLS"))
		}
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			o.errs = append(o.errs, fmt.Errorf("option ca: %w", err))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) && err == nil {
			o.errs = append(o.errs, fmt.Errorf("option ca: %s has no certificate", ca))
		}
	}
	if cert != "" || key != "" {
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			o.errs = append(o.errs, fmt.Errorf("options cert and key: %w", err))
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// Secret is the content of the file that an option names, without the line's end; empty when the
// option is not given.
func (o *Options) Secret(name string) string {
	file := o.String(name, "")
	if file == "" {
		return ""
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		o.errs = append(o.errs, fmt.Errorf("option %s: %w", name, err))
	}
	return strings.TrimRight(string(secret), "\r\n")
}
