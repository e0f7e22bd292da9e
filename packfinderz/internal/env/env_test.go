package env_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// of is an environment.
func of(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

const (
	ttl   = "PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL"
	hours = "PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS"
)

// The older name counts where the newer one is not set.
func TestIdempotencyTTL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values map[string]string
		want   time.Duration
		bad    string
	}{
		{nil, 720 * time.Hour, ""},
		{map[string]string{ttl: "48h"}, 48 * time.Hour, ""},
		{map[string]string{hours: "168"}, 168 * time.Hour, ""},
		{map[string]string{ttl: "", hours: "168"}, 168 * time.Hour, ""},
		{map[string]string{ttl: "48h", hours: "168"}, 48 * time.Hour, ""},
		{map[string]string{ttl: "48h", hours: "nonsense"}, 48 * time.Hour, ""},
		{map[string]string{ttl: "48"}, 720 * time.Hour, ttl},
		{map[string]string{ttl: "-1h"}, 720 * time.Hour, ttl},
		{map[string]string{hours: "a week"}, 720 * time.Hour, hours},
		{map[string]string{hours: "0"}, 720 * time.Hour, hours},
		{map[string]string{hours: "99999999"}, 720 * time.Hour, hours},
	} {
		r := env.NewReader(of(test.values))
		got := r.IdempotencyTTL()
		if err := r.Err(); got != test.want || errors.Is(err, env.ErrUsage) != (test.bad != "") || err != nil && !strings.Contains(err.Error(), test.bad+" is ") {
			t.Errorf("%v gives %s, %v", test.values, got, err)
		}
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
