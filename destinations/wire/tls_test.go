package wire_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	certificate := testserver.NewCertificate(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := wire.ParseOptions("ca=" + certificate.CA + "&cert=" + certificate.Cert + "&key=" + certificate.Key)
	if config := o.TLS(true); config == nil || config.RootCAs == nil || o.Err() != nil {
		t.Errorf("%+v, %v", config, o.Err())
	} else if own, err := config.GetClientCertificate(nil); err != nil || len(own.Certificate) == 0 {
		t.Errorf("the client's certificate: %v", err)
	}
	o = wire.ParseOptions("")
	if config := o.TLS(true); config == nil || config.RootCAs != nil || config.GetClientCertificate != nil || o.Err() != nil {
		t.Errorf("%+v, %v", config, o.Err())
	}
	if config := o.TLS(false); config != nil || o.Err() != nil {
		t.Errorf("without TLS: %+v, %v", config, o.Err())
	}
	for query, words := range map[string]string{
		"ca=none.pem":                 "option ca: open none.pem",
		"ca=" + empty:                 "empty.pem has no certificate",
		"cert=" + certificate.Cert:    "options cert and key",
		"key=" + certificate.Key:      "options cert and key",
		"ca=" + certificate.CA + "&-": "there is no option",
	} {
		o := wire.ParseOptions(query)
		o.TLS(true)
		if err := o.Err(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %s", query, err, words)
		}
	}
	o = wire.ParseOptions("ca=" + certificate.CA)
	o.TLS(false)
	if err := o.Err(); err == nil || !strings.Contains(err.Error(), "over TLS") {
		t.Errorf("ca without TLS: %v", err)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(" p w \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := wire.ParseOptions("a=" + file + "&b=none")
	if got := o.Secret("a"); got != " p w " {
		t.Errorf("got %q", got)
	}
	if got := o.Secret("c"); got != "" || o.Secret("b") != "" {
		t.Errorf("got %q", got)
	}
	if err := o.Err(); err == nil || !strings.Contains(err.Error(), "option b") {
		t.Error(err)
	}
}
