package natsjs_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	creds := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(creds, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]natsjs.Config{
		"nats://host":             {Addresses: []string{"host:4222"}},
		"nats://h:1,[::1]:2/":     {Addresses: []string{"h:1", "[::1]:2"}},
		"tls://h":                 {Addresses: []string{"h:4222"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
		"nats://u:p%40%2F:x@h":    {Addresses: []string{"h:4222"}, Username: "u", Password: "p@/:x"},
		"nats://t0ken@h":          {Addresses: []string{"h:4222"}, Token: "t0ken"},
		"nats://h?creds=" + creds: {Addresses: []string{"h:4222"}, Creds: creds},
		"nats://h?create=true&stream=S&subject-prefix=a.&window=7&format=cloudevents&source=/s": {
			Addresses: []string{"h:4222"}, Create: true, Stream: "S", SubjectPrefix: "a.", Window: 7,
			Format: wire.Format{CloudEvents: true, Source: "/s"},
		},
	} {
		if want.Window == 0 {
			want.Window = natsjs.DefaultWindow
		}
		got, err := natsjs.ParseURL(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for raw, words := range map[string]string{
		"http://s3cret@h":                  "nats://",
		"nats://u:1/s3cret@h":              "%XX",
		"nats://":                          "a host must look like",
		"nats://s3cret@":                   "a host must look like",
		"nats://u:s3cret@h:port":           "a host must look like",
		"nats://u:s3cret@a:b:c":            "a host must look like",
		"nats://u:s3cret%zz@h":             "%XX",
		"nats://s3cret%zz@h":               "%XX",
		"nats://u:s3cret@h/path":           "only options",
		"nats://u:s3cret@h?creat=true":     `no option "creat"`,
		"nats://u:s3cret@h?create=maybe":   "true or false",
		"nats://u:s3cret@h?window=0":       "above zero",
		"nats://u:s3cret@h?cert=a":         "go together",
		"nats://u:s3cret@h?stream=a.b":     "name of a stream",
		"nats://h?subject-prefix=a..":      "empty",
		"nats://h?creds=/nowhere":          "no such file",
		"nats://u:s3cret@h?creds=/nowhere": "twice",
		"nats://h?ca=/nowhere":             "no such file",
		"nats://h?cert=/nowhere&key=/n":    "no such file",
		"nats://h?source=/s":               "format=cloudevents",
	} {
		_, err := natsjs.ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %q", raw, err, words)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}
