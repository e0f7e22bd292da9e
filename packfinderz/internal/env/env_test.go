package env_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// of is an environment.
func of(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestSharedNames(t *testing.T) {
	t.Parallel()
	r := env.NewReader(of(map[string]string{
		"REDIS_URL": "redis://heroku", "DATABASE_URL": "postgres://heroku",
		"PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION": "mine",
	}))
	if r.Redis() != "redis://heroku" || r.Database() != "postgres://heroku" || r.DomainSubscription() != "mine" || r.Err() != nil {
		t.Errorf("what others set is not read: %v", r.Err())
	}
	none := env.NewReader(of(nil))
	_, _ = none.Redis(), none.Database("PACKFINDERZ_WORKER_DATABASE_URL")
	for _, name := range []string{"PACKFINDERZ_REDIS_URL", "PACKFINDERZ_DATABASE_URL"} {
		if err := none.Err(); err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An address that cannot be read is refused by the name of the variable that has it, with what is wrong, and without a password wherever
// that stands in it.
func TestDatabaseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, says string }{
		{"DATABASE_URL", "mysql://u:s3cret@host/db", "no address of PostgreSQL"},
		{"PACKFINDERZ_DATABASE_URL", "postgres://u:s3cret@host:port/db", "postgres://user:password@host:5432/database"},
		{"PACKFINDERZ_DATABASE_URL", "postgres://u:s3cret/s3cret@host/db", "%XX"},
		{"PACKFINDERZ_DATABASE_URL", "postgres://u:%s3cret@host/db", "%XX"},
		{"PACKFINDERZ_DATABASE_URL", "postgres://u:p@s3cret@host/db?sslmode=some", "(failed to configure TLS (sslmode is invalid))"},
		{"PACKFINDERZ_DATABASE_URL", "postgres://u@host/db?password=s3cret&pool_max_conns=many", "pool_max_conns"},
		{"PACKFINDERZ_DATABASE_URL", "host=h password=s3cret port=99999", "invalid port"},
		{"PACKFINDERZ_WORKER_DATABASE_URL", "a word", "no address of PostgreSQL"},
	} {
		r := env.NewReader(of(map[string]string{test.name: test.value}))
		r.Database("PACKFINDERZ_WORKER_DATABASE_URL")
		err := r.Err()
		if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), ": "+test.name+" is no") || !strings.Contains(err.Error(), test.says) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
	}
}

// A port is a number that there is.
func TestListen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value string }{
		{"LISTEN", ":99999"}, {"LISTEN", "localhost:http"}, {"LISTEN", "8080"}, {"LISTEN", "[::1"}, {"LISTEN", ":-1"}, {"LISTEN", "localhost:"},
		{"PORT", "99999"}, {"PORT", "http"}, {"PORT", "0"},
	} {
		r := env.NewReader(of(map[string]string{test.name: test.value}))
		r.Listen("127.0.0.1:8080", "LISTEN")
		if err := r.Err(); !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), test.name+" is ") || !strings.Contains(err.Error(), "65535") {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
	}
	r := env.NewReader(of(map[string]string{"LISTEN": "[::1]:65535"}))
	if r.Listen("", "LISTEN") != "[::1]:65535" || r.Err() != nil {
		t.Error(r.Err())
	}
}
