package webhook_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
	"github.com/packfinderz/outbox/destinations/wire"
)

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseURL(t *testing.T) {
	t.Setenv(webhook.SecretVariable, "")
	plain := webhook.Config{Timeout: webhook.DefaultTimeout, Concurrency: webhook.DefaultConcurrency}
	with := func(change func(*webhook.Config)) webhook.Config {
		config := plain
		change(&config)
		return config
	}
	for raw, want := range map[string]webhook.Config{
		"https://example.com/hook":                          with(func(c *webhook.Config) { c.URL = "https://example.com/hook" }),
		"http://u:p@example.com:8080/?format=x&timeout=no#": with(func(c *webhook.Config) { c.URL = "http://u:p@example.com:8080/?format=x&timeout=no" }),
		"https://example.com#format=cloudevents&source=/shop&timeout=5s&concurrency=2&allow-private=true": {
			URL: "https://example.com", Format: wire.Format{CloudEvents: true, Source: "/shop"}, Timeout: 5 * time.Second, Concurrency: 2, AllowPrivate: true,
		},
		"https://example.com#secret-file=" + file(t, secret("a")+"\n"+secret("b")+"\n") + "&authorization-file=" + file(t, "Bearer x\n"): with(func(c *webhook.Config) {
			c.URL, c.Secrets, c.Authorization = "https://example.com", []string{secret("a"), secret("b")}, "Bearer x"
		}),
	} {
		got, err := webhook.ParseURL(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			// Not %v: a Config shows nothing of itself.
			t.Errorf("%s: %v, %s %v %s %d", raw, err, got.URL, got.Format, got.Timeout, len(got.Secrets))
		}
	}
	t.Setenv(webhook.SecretVariable, secret("e")+" "+secret("f"))
	if got, err := webhook.ParseURL("https://example.com"); err != nil || len(got.Secrets) != 2 || got.Secrets[1] != secret("f") {
		t.Errorf("secrets of the environment: %d, %v", len(got.Secrets), err)
	}
	if got, err := webhook.ParseURL("https://example.com#secret-file=" + file(t, secret("a"))); err != nil || len(got.Secrets) != 1 || got.Secrets[0] != secret("a") {
		t.Errorf("a file beside the environment: %d, %v", len(got.Secrets), err)
	}
	t.Setenv(webhook.SecretVariable, "hunter2-hunter2")
	wantRefusal(t, "https://example.com", "secret 1 of 1 does not begin with whsec_")
}

func wantRefusal(t *testing.T, raw, words string) {
	t.Helper()
	_, err := webhook.ParseURL(raw)
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want %q", raw, err, words)
		return
	}
	for _, word := range []string{"pa55w0rd", "hunter2"} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%v shows a secret", err)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for raw, words := range map[string]string{
		"ftp://ada:pa55w0rd@example.com":                                    "neither https:// nor http://",
		"https:///path":                                                     "no host",
		"https://ada:pa55w0rd@exa mple.com":                                 "the URL is invalid",
		"https://ada:pa55w0rd%zz@example.com":                               "the URL is invalid",
		"https://example.com#fromat=cloudevents":                            `there is no option "fromat"`,
		"https://example.com#format=xml":                                    "plain or cloudevents",
		"https://example.com#timeout=0s":                                    "a time such as",
		"https://example.com#concurrency=0":                                 "a whole number",
		"https://example.com#a=%zz":                                         "name=value",
		"https://example.com#secret-file=/nowhere/to/be/found":              "option secret-file",
		"https://example.com#secret-file=" + file(t, ""):                    "is empty",
		"https://example.com#secret-file=" + file(t, "whsec_aHVudGVyMg=="):  "24 to 64 bytes in base64",
		"https://example.com#authorization-file=" + file(t, "a\nb"):         "the authorization has a character",
		"https://a:b@example.com#authorization-file=" + file(t, "Bearer x"): "keep one",
		"https://example.com#ca-file=" + file(t, "none"):                    "has no certificate",
		"https://example.com#cert-file=" + file(t, "none"):                  "go together",
		"https://example.com#cert-file=/none&key-file=/none":                "options cert-file and key-file",
	} {
		wantRefusal(t, raw, words)
	}
	for name, config := range map[string]webhook.Config{
		"a fragment":       {URL: "https://example.com#timeout=1s"},
		"a negative time":  {URL: "https://example.com", Timeout: -1},
		"a negative count": {URL: "https://example.com", Concurrency: -1},
		"a bad secret":     {URL: "https://example.com", Secrets: []string{"whsec_x"}},
		"no URL":           {},
	} {
		if _, err := webhook.New(config); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestTLS has a certificate that only ca-file knows, over HTTP/2 and 1.1.
func TestTLS(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r := &receiver{}
		r.Server = httptest.NewUnstartedServer(r)
		r.EnableHTTP2 = http2
		r.StartTLS()
		t.Cleanup(r.Close)
		ca := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})))
		config, err := webhook.ParseURL(fmt.Sprintf("%s/hook#allow-private=true&ca-file=%s", r.URL, ca))
		if err != nil {
			t.Fatal(err)
		}
		publisher := open(t, config)
		if err := publisher.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		for _, err := range publisher.Publish(t.Context(), []outbox.Message{event(), event()}) {
			if err != nil {
				t.Error(err)
			}
		}
		if n := len(r.deliveries()); n != 2 {
			t.Errorf("HTTP/2 %t: %d requests arrived", http2, n)
		}
	}
}
