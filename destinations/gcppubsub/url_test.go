package gcppubsub_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]gcppubsub.Config{
		"gcppubsub://shop-prod":                              {Project: "shop-prod"},
		"gcppubsub://shop-prod/":                             {Project: "shop-prod"},
		"gcppubsub://example.com:shop":                       {Project: "example.com:shop"},
		"gcppubsub://123456":                                 {Project: "123456"},
		"gcppubsub://p?create=true":                          {Project: "p", Create: true},
		"gcppubsub://p?ordering=false":                       {Project: "p", Unordered: true},
		"gcppubsub://p?ordering=true":                        {Project: "p"},
		"gcppubsub://p?credentials=/etc/key":                 {Project: "p", Credentials: "/etc/key"},
		"gcppubsub://p?endpoint=h:1&insecure=true":           {Project: "p", Endpoint: "h:1", Insecure: true},
		"gcppubsub://p?endpoint=[::1]:1":                     {Project: "p", Endpoint: "[::1]:1"},
		"gcppubsub://p?format=cloudevents&source=%2Fshop%3F": {Project: "p", Format: wire.Format{CloudEvents: true, Source: "/shop?"}},
	} {
		if got, err := gcppubsub.ParseURL(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
	for raw, says := range map[string]string{
		"pubsub://p":                                          "gcppubsub://PROJECT",
		"gcppubsub:p":                                         "gcppubsub://PROJECT",
		"gcppubsub://":                                        "missing",
		"gcppubsub://p/orders":                                "p/orders",
		"gcppubsub://P":                                       "not the id",
		"gcppubsub://p?endpoint=host":                         "host:port",
		"gcppubsub://p?insecure=true":                         "endpoint",
		"gcppubsub://p?insecure=maybe":                        "insecure",
		"gcppubsub://p?ordering=maybe":                        "ordering",
		"gcppubsub://p?topic=orders":                          `"topic"`,
		"gcppubsub://p?source=/shop":                          "cloudevents",
		"gcppubsub://p?endpoint=h:1&insecure=1&credentials=f": "credentials",
	} {
		_, err := gcppubsub.ParseURL(raw)
		wantText(t, err, says)
	}
}

func TestNoSecretsInErrors(t *testing.T) {
	t.Parallel()
	_, err := gcppubsub.ParseURL("gcppubsub://user:s3cret@p")
	wantText(t, err, "credentials=FILE")
	wantNoSecret(t, err)
	_, err = gcppubsub.New(gcppubsub.Config{Project: "user:s3cret@p"})
	wantNoSecret(t, err)
	for name, content := range map[string]string{
		"not JSON":     `s3cret`,
		"unknown type": `{"type": "s3cret"}`,
		"bad key":      `{"type": "service_account", "client_email": "a@b", "private_key": "s3cret", "token_uri": "http://127.0.0.1:1"}`,
	} {
		file := filepath.Join(t.TempDir(), "key.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		publisher, err := gcppubsub.New(gcppubsub.Config{Project: "p", Endpoint: "127.0.0.1:1", Credentials: file})
		if err == nil {
			errs := publishertest.Publish(t, publisher, ofKeys("a"))
			if err = errs[0]; publishertest.Fate(err) != "away" {
				t.Errorf("%s: %v; want that it is away", name, err)
			}
			if err := publisher.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("%s: %v", name, err)
		wantNoSecret(t, err)
	}
	_, err = gcppubsub.New(gcppubsub.Config{Project: "p", Credentials: filepath.Join(t.TempDir(), "none.json")})
	wantText(t, err, "none.json")
}

// The key of a service account can be given as it is, and counts before the application default credentials.
func TestCredentialsJSON(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	const endpoint = "127.0.0.1:1"
	_, err := gcppubsub.New(gcppubsub.Config{Project: "p", Endpoint: endpoint})
	wantText(t, err, "none.json")
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b", "token_uri": "http://127.0.0.1:1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := gcppubsub.New(gcppubsub.Config{Project: "p", Endpoint: endpoint, CredentialsJSON: string(account)})
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Close(); err != nil {
		t.Error(err)
	}
	for name, config := range map[string]gcppubsub.Config{
		"not JSON":     {CredentialsJSON: `s3cret`},
		"unknown type": {CredentialsJSON: `{"type": "s3cret"}`},
		"a file, too":  {CredentialsJSON: `{"type": "service_account"}`, Credentials: "key.json"},
		"insecure":     {CredentialsJSON: `{"type": "service_account"}`, Insecure: true, Endpoint: endpoint},
	} {
		config.Project = "p"
		_, err := gcppubsub.New(config)
		t.Logf("%s: %v", name, err)
		wantNoSecret(t, err)
	}
}

func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}
