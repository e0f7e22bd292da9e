package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TLS returns the configuration of the options ca, cert and key; see Certificates. If secure is false it returns
// nil, and giving one of the three is an error.
func (o *Options) TLS(secure bool) *tls.Config {
	config := o.Certificates("ca", "cert", "key")
	if secure && config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	} else if !secure && config != nil {
		o.errs = append(o.errs, errors.New("options ca, cert and key go with a connection over TLS"))
	}
	return config
}

// Certificates reads three options, each the name of a PEM file: the authorities to trust instead of the system's,
// and the client's certificate and key. It returns nil if none is given. The client's certificate is read again for
// each connection, so that it can be renewed.
func (o *Options) Certificates(ca, cert, key string) *tls.Config {
	caFile, certFile, keyFile := o.String(ca, ""), o.String(cert, ""), o.String(key, "")
	if caFile+certFile+keyFile == "" {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			o.errs = append(o.errs, fmt.Errorf("option %s: %w", ca, err))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) && err == nil {
			o.errs = append(o.errs, fmt.Errorf("option %s: %s has no certificate", ca, caFile))
		}
	}
	if (certFile == "") != (keyFile == "") {
		o.errs = append(o.errs, fmt.Errorf("options %s and %s go together", cert, key))
	} else if certFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			own, err := tls.LoadX509KeyPair(certFile, keyFile)
			return &own, err
		}
		if _, err := config.GetClientCertificate(nil); err != nil {
			o.errs = append(o.errs, fmt.Errorf("options %s and %s: %w", cert, key, err))
		}
	}
	return config
}

// Secret returns the content of the file that an option names, without the line's end; empty if the option is not
// given.
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
