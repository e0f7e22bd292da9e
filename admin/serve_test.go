package admin_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// TestExposed: without credentials the console listens on the loopback and nowhere else.
func TestExposed(t *testing.T) {
	t.Parallel()
	outboxes := []admin.Outbox{{Name: "shop", Outbox: newTable(t)}}
	open, err := admin.New(admin.Config{Outboxes: outboxes, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		if _, err := open.Listen(address, nil); !errors.Is(err, admin.ErrExposed) {
			t.Errorf("listening on %s: %v", address, err)
		}
	}
	if _, err := open.Listen("nonsense", nil); err == nil {
		t.Error("it listens on nonsense")
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		server, err := open.Listen(address, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetch(t, http.DefaultClient, server.URL, http.StatusOK)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	closed, err := admin.New(admin.Config{Outboxes: outboxes, Access: admin.Access{Credentials: newParties(t).Credentials}, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	server, err := closed.Listen("0.0.0.0:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	console, err := admin.New(admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: newTable(t)}}, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	certificate := testserver.NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(certificate.Cert, certificate.Key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := console.Listen("127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	authority, err := os.ReadFile(certificate.CA)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if cookie := fetch(t, client, server.URL, http.StatusSeeOther).Get("Set-Cookie"); !strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie is %q", cookie)
	}
}

// fetch gets a page and returns the headers of the answer.
func fetch(t *testing.T, client *http.Client, address string, status int) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != status {
		t.Errorf("%s answers %d, want %d", address, response.StatusCode, status)
	}
	return response.Header
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for words, config := range map[string]admin.Config{
		"no Outboxes":        {},
		"two outboxes":       {Outboxes: []admin.Outbox{{Name: "a", Outbox: table}, {Name: "a", Outbox: table}}},
		"has no name":        {Outboxes: []admin.Outbox{{Outbox: table}}},
		"is nil":             {Outboxes: []admin.Outbox{{Name: "a"}}},
		"must be a path":     {Outboxes: []admin.Outbox{{Name: "a", Outbox: table}}, Prefix: "outbox/"},
		"no header gives na": {Outboxes: []admin.Outbox{{Name: "a", Outbox: table}}, Access: admin.Access{Proxy: admin.Proxy{Addresses: loopback, RoleHeader: "X"}}},
	} {
		if _, err := admin.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", words, err)
		}
	}
	for words, lines := range map[string]string{
		"line 2: it must be name:role:hash": "\nann",
		"there is no role":                  "ann:emperor:x",
		"not one of bcrypt":                 "ann:viewer:hunter2",
		"64 hexadecimal":                    "ann:viewer:sha256:abcd",
	} {
		_, err := admin.ParseCredentials(strings.NewReader(lines))
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", lines, err)
		}
	}
	for _, name := range []string{"", "a:b", " a", "#a", "a\nb"} {
		if line, err := admin.NewUser(name, admin.Viewer, password); err == nil {
			t.Errorf("a user %q: %s", name, line)
		}
	}
	for _, short := range []string{"", "short", strings.Repeat("x", 73)} {
		if _, err := admin.NewUser("ann", admin.Viewer, short); err == nil {
			t.Errorf("the password %q is taken", short)
		}
	}
	if _, err := admin.ParseProxyAddresses([]string{"10.0.0.7", "10.1.0.0/16", "nowhere"}); err == nil {
		t.Error("nowhere is an address")
	}
}
