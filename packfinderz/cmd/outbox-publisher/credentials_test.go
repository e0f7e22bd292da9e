package main

import (
	"maps"
	"testing"

	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

// The key of a service account is read from a variable; one that cannot work is refused, without being told.
func TestCredentials(t *testing.T) {
	t.Parallel()
	key := backendtest.Credentials(t)
	c, err := readConfig(environment(map[string]string{"PACKFINDERZ_GCP_CREDENTIALS_JSON": key}))
	if err != nil || c.pubsub.CredentialsJSON != key {
		t.Errorf("the credentials are not read (%v)", err)
	}
	backendtest.RefusesCredentials(t, func(more map[string]string) map[string]string {
		all := map[string]string{"PACKFINDERZ_DATABASE_URL": "postgres://db", "PACKFINDERZ_PUBSUB_PROJECT": "pf"}
		maps.Copy(all, more)
		return all
	}, run)
}

// Heroku says in PORT where to listen; a variable of our own counts more.
func TestPort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ port, listen, want string }{
		{"", "", "127.0.0.1:8081"}, {"5000", "", ":5000"}, {"5000", "localhost:80", "localhost:80"},
	} {
		got, err := readConfig(environment(map[string]string{"PORT": c.port, "PACKFINDERZ_PUBLISHER_LISTEN": c.listen}))
		if err != nil || got.listen != c.want {
			t.Errorf("%+v: %+v, %v", c, got.listen, err)
		}
	}
	if _, err := readConfig(environment(map[string]string{"PORT": "http"})); err == nil {
		t.Error("PORT=http is not refused")
	}
}
