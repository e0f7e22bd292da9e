package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// environment is one that has only what is needed.
func environment(more map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := more[name]; ok {
			return value, true
		}
		value, ok := map[string]string{"PACKFINDERZ_DATABASE_URL": "postgres://db", "PACKFINDERZ_PUBSUB_PROJECT": "pf"}[name]
		return value, ok
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := readConfig(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.batchSize != 50 || c.poll != 500*time.Millisecond || c.maxAttempts != 10 || c.listen != "127.0.0.1:8081" ||
		c.topics != registry.DefaultTopics() || c.topics.Domain != "pf-domain-events" || c.pubsub.Insecure {
		t.Errorf("the defaults are %+v", c)
	}
	clean, err := readCleanupConfig(environment(nil))
	if err != nil || clean.published != 30*24*time.Hour || clean.dead != 0 {
		t.Errorf("the cleanup's defaults are %+v (%v)", clean, err)
	}
}

// Every name is read, and refused by name when its value makes no sense.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	publisher := func(got func(config) any) func(func(string) (string, bool)) (any, error) {
		return func(lookup func(string) (string, bool)) (any, error) {
			c, err := readConfig(lookup)
			return got(c), err
		}
	}
	cleaner := func(got func(cleanupConfig) any) func(func(string) (string, bool)) (any, error) {
		return func(lookup func(string) (string, bool)) (any, error) {
			c, err := readCleanupConfig(lookup)
			return got(c), err
		}
	}
	for name, test := range map[string]struct {
		value string
		want  any
		read  func(lookup func(string) (string, bool)) (any, error)
		bad   []string
	}{
		"PACKFINDERZ_DATABASE_URL":   {"postgres://other", "postgres://other", publisher(func(c config) any { return c.database }), []string{"", "postgres://host:port/db"}},
		"PACKFINDERZ_PUBSUB_PROJECT": {"other", "other", publisher(func(c config) any { return c.pubsub.Project }), []string{"", "My Project"}},
		"PUBSUB_EMULATOR_HOST":       {"localhost:8085", "localhost:8085", publisher(func(c config) any { return c.pubsub.Endpoint }), []string{"localhost"}},
		"PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE": {
			"200", 200, publisher(func(c config) any { return c.batchSize }), []string{"0", "-1", "many", "1.5", "10001"}},
		"PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS": {
			"250", 250 * time.Millisecond, publisher(func(c config) any { return c.poll }), []string{"0", "-1", "500ms", "10001"}},
		"PACKFINDERZ_OUTBOX_MAX_ATTEMPTS": {"25", 25, publisher(func(c config) any { return c.maxAttempts }), []string{"0", "-1", "ten"}},
		"PACKFINDERZ_PUBSUB_DOMAIN_TOPIC": {
			"orders", "orders", publisher(func(c config) any { return c.topics.Domain }), []string{"a b", "x", "1st", "google-topic"}},
		"PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC": {
			"ads", "ads", publisher(func(c config) any { return c.topics.Analytics }), []string{"a/b"}},
		"PACKFINDERZ_PUBSUB_NOTIFICATIONS_TOPIC": {
			"notes", "notes", publisher(func(c config) any { return c.topics.Notifications }), []string{"a/b"}},
		"PACKFINDERZ_PUBSUB_BILLING_TOPIC": {"money", "money", publisher(func(c config) any { return c.topics.Billing }), []string{"a/b"}},
		"PACKFINDERZ_PUBLISHER_LISTEN":     {":9", ":9", publisher(func(c config) any { return c.listen }), []string{"9", "here", ":99999"}},
		"PACKFINDERZ_OUTBOX_RETENTION": {
			"48h", 48 * time.Hour, cleaner(func(c cleanupConfig) any { return c.published }), []string{"30 days", "-1h", "59m", "30"}},
		"PACKFINDERZ_OUTBOX_DLQ_RETENTION": {
			"2160h", 2160 * time.Hour, cleaner(func(c cleanupConfig) any { return c.dead }), []string{"90 days", "-1h", "0h"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := test.read(environment(map[string]string{name: test.value})); err != nil || got != test.want {
				t.Errorf("%s=%s gives %v (%v), want %v", name, test.value, got, err, test.want)
			}
			for _, bad := range test.bad {
				_, err := test.read(environment(map[string]string{name: bad}))
				if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), name) {
					t.Errorf("%s=%q: %v", name, bad, err)
				}
			}
		})
	}
}

// What others set is read where ours is not.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"PACKFINDERZ_DATABASE_URL": "", "DATABASE_URL": "postgres://heroku",
		"PACKFINDERZ_PUBSUB_PROJECT": "", "GOOGLE_CLOUD_PROJECT": "google",
	}
	c, err := readConfig(environment(values))
	if err != nil || c.database != "postgres://heroku" || c.pubsub.Project != "google" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// All that is wrong is said at once.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := readConfig(environment(map[string]string{
		"PACKFINDERZ_DATABASE_URL": "", "PACKFINDERZ_OUTBOX_MAX_ATTEMPTS": "x", "PACKFINDERZ_PUBSUB_BILLING_TOPIC": "?",
	}))
	for _, name := range []string{"PACKFINDERZ_DATABASE_URL", "PACKFINDERZ_OUTBOX_MAX_ATTEMPTS", "PACKFINDERZ_PUBSUB_BILLING_TOPIC"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"frobnicate"}, {"cleanup", "now"}, {"--help"}} {
		if err := run(t.Context(), args, environment(nil), nil); program.ExitCode(err) != 2 {
			t.Errorf("%q: %v", args, err)
		}
	}
	if program.ExitCode(errors.New("no database")) != 1 {
		t.Error("a failure of a server is taken for a wrong use")
	}
}
