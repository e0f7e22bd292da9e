package redis_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := redis.Config{Addresses: []string{"h:6379"}, WaitTimeout: redis.DefaultWaitTimeout, MaxSize: redis.DefaultMaxSize}
	with := func(change func(*redis.Config)) redis.Config {
		config := plain
		change(&config)
		return config
	}
	for url, want := range map[string]redis.Config{
		"redis://h":        plain,
		"redis://h:6379/0": plain,
		"redis://u:p%40@[::1]:7000/3": with(func(c *redis.Config) {
			c.Addresses, c.Username, c.Password, c.DB = []string{"[::1]:7000"}, "u", "p@", 3
		}),
		"redis://:p@h":                        with(func(c *redis.Config) { c.Password = "p" }),
		"redis://u@h?password-file=" + secret: with(func(c *redis.Config) { c.Username, c.Password = "u", "s3cret" }),
		"redis://h,h2:7000":                   with(func(c *redis.Config) { c.Addresses = []string{"h:6379", "h2:7000"} }),
		"redis://h?cluster=true":              with(func(c *redis.Config) { c.Cluster = true }),
		"redis://h?prefix=app:&create=true&maxlen=9&wait=2&wait-timeout=1s&max-size=100&format=cloudevents&source=/a": with(func(c *redis.Config) {
			c.Prefix, c.Create, c.MaxLen, c.Wait, c.WaitTimeout, c.MaxSize = "app:", true, 9, 2, time.Second, 100
			c.Format = wire.Format{CloudEvents: true, Source: "/a"}
		}),
	} {
		got, err := redis.ParseURL(url)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", url, got, err, want)
		}
	}
	if config, err := redis.ParseURL("rediss://h"); err != nil || config.TLS == nil {
		t.Errorf("rediss: TLS is %v, %v", config.TLS, err)
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for url, words := range map[string]string{
		"redis:h":                        "must look like redis://",
		"http://h":                       "must look like redis://",
		"redis://":                       "a host must look like",
		"redis://h:port":                 "a host must look like",
		"redis://h,":                     "a host must look like",
		"redis://h/x":                    "number of a database",
		"redis://h/-1":                   "number of a database",
		"redis://h?creat=true":           `there is no option "creat"`,
		"redis://h?maxlen=0x":            "whole number",
		"redis://h?wait=1&cluster=true":  "does not go with a cluster",
		"redis://h,h2?wait=1":            "does not go with a cluster",
		"redis://h,h2/1":                 "only database 0",
		"redis://h?ca=x.pem":             "go with a connection over TLS",
		"rediss://h?ca=none.pem":         "option ca",
		"rediss://h?cert=none.pem":       "options cert and key",
		"redis://h?password-file=none":   "option password-file",
		"redis://u:s3cret@h?creat=true":  "there is no option",
		"redis://u:s3cret@h:x":           "a host must look like",
		"redis://u:s3cret/@h":            "",
		"redis://u:1?s3cret@h":           "must look like redis://",
		"redis://u:1/s3cret@h":           "",
		"redis://u:1#s3cret@h":           "must look like redis://",
		"redis://u:%zz-s3cret@h":         "must look like redis://",
		"redis://u:s3cret@h:99999?wait=": "",
	} {
		_, err := redis.ParseURL(url)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", url, err, words)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password shows: %v", url, err)
		}
	}
}
