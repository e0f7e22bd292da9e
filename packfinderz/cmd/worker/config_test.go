package main

import (
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

// read reads an environment that has what has no default, with a variable on top.
func read(name, value string) (config, error) {
	environment := map[string]string{
		"PACKFINDERZ_DATABASE_URL": "postgres:///", "PACKFINDERZ_REDIS_URL": "redis://localhost", "PACKFINDERZ_PUBSUB_PROJECT": "project",
	}
	environment[name] = value
	return readConfig(backendtest.Lookup(environment))
}

// TestConfig reads every variable, and nothing but the defaults.
func TestConfig(t *testing.T) {
	t.Parallel()
	defaults, err := read("", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		value string
		get   func(config) any
		want  any
	}{
		"PACKFINDERZ_DATABASE_URL":                 {"postgres:///a", func(c config) any { return c.database }, "postgres:///a"},
		"PACKFINDERZ_WORKER_DATABASE_URL":          {"postgres:///b", func(c config) any { return c.database }, "postgres:///b"},
		"PACKFINDERZ_REDIS_URL":                    {"redis://a", func(c config) any { return c.redis }, "redis://a"},
		"PACKFINDERZ_PUBSUB_PROJECT":               {"packfinderz", func(c config) any { return c.pubsub.Project }, "packfinderz"},
		"PUBSUB_EMULATOR_HOST":                     {"localhost:8085", func(c config) any { return c.pubsub.Endpoint }, "localhost:8085"},
		"PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION":   {"sub", func(c config) any { return c.subscription }, "sub"},
		"PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC":     {"dead", func(c config) any { return c.deadLetters }, "dead"},
		"PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL":     {"48h", func(c config) any { return c.remember }, 48 * time.Hour},
		"PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS": {"168", func(c config) any { return c.remember }, 168 * time.Hour},
		"PACKFINDERZ_EVENTING_PROCESSING_TTL":      {"30s", func(c config) any { return c.processing }, 30 * time.Second},
		"PACKFINDERZ_WORKER_ACK_DEADLINE":          {"20s", func(c config) any { return c.ackDeadline }, 20 * time.Second},
		"PACKFINDERZ_WORKER_CONCURRENCY":           {"3", func(c config) any { return c.concurrency }, 3},
		"PACKFINDERZ_WORKER_LISTEN":                {":9000", func(c config) any { return c.listen }, ":9000"},
	} {
		got, err := read(name, c.value)
		if err != nil || c.get(got) != c.want {
			t.Errorf("%s=%s: %v, %v", name, c.value, c.get(got), err)
		}
		if c.get(defaults) == c.want {
			t.Errorf("%s: %v is the default, too", name, c.want)
		}
	}
	if defaults.remember != 720*time.Hour || defaults.processing != time.Minute || defaults.deadLetters != letterTopic {
		t.Errorf("the defaults are %+v", defaults)
	}
}

// TestTooLong has times that do not go with others: each is refused with its name, and that of the other.
func TestTooLong(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"PACKFINDERZ_EVENTING_PROCESSING_TTL":  "721h",
		"PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL": "30s",
	} {
		_, err := read(name, value)
		if program.ExitCode(err) != 2 || !strings.Contains(err.Error(), processingName) || !strings.Contains(err.Error(), ttlName) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	if _, err := read("PACKFINDERZ_WORKER_ACK_DEADLINE", "11m"); program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "to 10m") {
		t.Error(err)
	}
}

// TestConfigRefuses has values that make no sense: each is refused with its name.
func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"PACKFINDERZ_DATABASE_URL":                 "",
		"PACKFINDERZ_WORKER_DATABASE_URL":          "postgres://host:port/db",
		"PUBSUB_EMULATOR_HOST":                     "localhost",
		"GOOGLE_APPLICATION_CREDENTIALS":           "none.json",
		"PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION":   "a subscription",
		"PACKFINDERZ_REDIS_URL":                    "",
		"PACKFINDERZ_PUBSUB_PROJECT":               "",
		"PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC":     "a topic",
		"PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL":     "720",
		"PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS": "7d",
		"PACKFINDERZ_EVENTING_PROCESSING_TTL":      "1ms",
		"PACKFINDERZ_WORKER_ACK_DEADLINE":          "1s",
		"PACKFINDERZ_WORKER_CONCURRENCY":           "0",
		"PACKFINDERZ_WORKER_LISTEN":                "8082",
	} {
		if _, err := read(name, value); program.ExitCode(err) != 2 || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v, want it to be named", name, value, err)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"now"}, nil, nil); program.ExitCode(err) != 2 {
		t.Errorf("%v, want arguments to be refused", err)
	}
}

// Dead letters that are delivered as events would be given up again, for ever.
func TestDeadLettersApart(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"pf-domain-events", "pf-billing-events"} {
		_, err := read("PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC", topic)
		if program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC is") {
			t.Errorf("dead letters on %s: %v", topic, err)
		}
	}
}
