package natsjs_test

import (
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
		"nats://host":             {Servers: []string{"host"}},
		"nats://h:1,[::1]:2/":     {Servers: []string{"h:1", "[::1]:2"}},
		"tls://h":                 {Servers: []string{"h"}, TLS: true},
		"nats://u:p%40%2F:x@h":    {Servers: []string{"h"}, User: "u", Password: "p@/:x"},
		"nats://t0ken@h":          {Servers: []string{"h"}, Token: "t0ken"},
		"nats://h?creds=" + creds: {Servers: []string{"h"}, Creds: creds},
		"nats://h?create=true&stream=S&subject-prefix=a.&window=7&format=cloudevents&source=/s": {
			Servers: []string{"h"}, Create: true, Stream: "S", SubjectPrefix: "a.", Window: 7,
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
		"http://s3cret@h":                  "nats:// or tls://",
		"nats://":                          "no server",
		"nats://s3cret@":                   "no server",
		"nats://u:s3cret@h:port":           `"port" is no port`,
		"nats://u:s3cret@a:b:c":            "host:port",
		"nats://u:s3cret%zz@h":             "percent",
		"nats://s3cret%zz@h":               "percent",
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
