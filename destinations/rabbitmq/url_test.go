package rabbitmq_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/rabbitmq"
	"github.com/packfinderz/outbox/destinations/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := rabbitmq.Config{
		Addresses: []string{"h:5672"}, Username: "guest", Password: "guest", Vhost: "/", RoutingKey: rabbitmq.DefaultRoutingKey, MaxSize: rabbitmq.DefaultMaxSize,
	}
	with := func(change func(*rabbitmq.Config)) rabbitmq.Config {
		config := plain
		change(&config)
		return config
	}
	for url, want := range map[string]rabbitmq.Config{
		"amqp://h":        plain,
		"amqp://h:5672/":  plain,
		"amqp://h/%2F":    plain,
		"amqp://h/shop":   with(func(c *rabbitmq.Config) { c.Vhost = "shop" }),
		"amqp://h/a%2Fb":  with(func(c *rabbitmq.Config) { c.Vhost = "a/b" }),
		"amqp://[::1]:70": with(func(c *rabbitmq.Config) { c.Addresses = []string{"[::1]:70"} }),
		"amqp://h,h2:70":  with(func(c *rabbitmq.Config) { c.Addresses = []string{"h:5672", "h2:70"} }),
		"amqp://u:p%40@h": with(func(c *rabbitmq.Config) { c.Username, c.Password = "u", "p@" }),
		"amqp://u@h?password-file=" + secret: with(func(c *rabbitmq.Config) {
			c.Username, c.Password = "u", "s3cret"
		}),
		"amqp://h?exchange=events&routing-key=a.{type}&create=true&max-size=9&format=cloudevents&source=/a": with(func(c *rabbitmq.Config) {
			c.Exchange, c.RoutingKey, c.Create, c.MaxSize = "events", "a.{type}", true, 9
			c.Format = wire.Format{CloudEvents: true, Source: "/a"}
		}),
	} {
		got, err := rabbitmq.ParseURL(url)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", url, got, err, want)
		}
	}
	if config, err := rabbitmq.ParseURL("amqps://h"); err != nil || config.TLS == nil || config.Addresses[0] != "h:5671" {
		t.Errorf("amqps: %s, TLS is %v, %v", config.Addresses, config.TLS, err)
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for url, words := range map[string]string{
		"amqp:h":                          "must look like amqp://",
		"http://h":                        "must look like amqp://",
		"amqp://":                         "a host must look like",
		"amqp://h:port":                   "a host must look like",
		"amqp://h/a/b":                    "one vhost",
		"amqp://h?creat=true":             `there is no option "creat"`,
		"amqp://h?routing-key={tpic}":     "placeholder",
		"amqp://h?ca=x.pem":               "go with a connection over TLS",
		"amqps://h?ca=none.pem":           "option ca",
		"amqp://h?password-file=none":     "option password-file",
		"amqp://u:s3cret@h?creat=true":    "there is no option",
		"amqp://u:s3cret@h:x":             "a host must look like",
		"amqp://u:s3cret/@h":              "must look like amqp://",
		"amqp://u:1?s3cret@h":             "must look like amqp://",
		"amqp://u:1/s3cret@h":             "must look like amqp://",
		"amqp://u:1#s3cret@h":             "must look like amqp://",
		"amqp://u:%zz-s3cret@h":           "must look like amqp://",
		"amqp://u:s3cret@h/%zz?max-size=": "must look like amqp://",
	} {
		_, err := rabbitmq.ParseURL(url)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", url, err, words)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password shows: %v", url, err)
		}
	}
}
