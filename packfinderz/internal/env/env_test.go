package env_test

import (
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
		"REDIS_URL": "redis://heroku", "DATABASE_URL": "postgres://heroku", "GOOGLE_CLOUD_PROJECT": "google",
		"PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION": "mine",
	}))
	if r.Redis() != "redis://heroku" || r.Database() != "postgres://heroku" || r.Project() != "google" || r.DomainSubscription() != "mine" || r.Err() != nil {
		t.Errorf("what others set is not read: %v", r.Err())
	}
	none := env.NewReader(of(nil))
	_, _, _ = none.Redis(), none.Database(), none.Project()
	for _, name := range []string{"PACKFINDERZ_REDIS_URL", "PACKFINDERZ_DATABASE_URL", "PACKFINDERZ_PUBSUB_PROJECT"} {
		if err := none.Err(); err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
