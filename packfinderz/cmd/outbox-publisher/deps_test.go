package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The publisher is a transport. It is built of the registry and nothing else of the backend: no consumer, no API,
// no GORM, and no server that only a developer needs.
func TestDependencies(t *testing.T) {
	t.Parallel()
	module := list(t, "-f", "{{.Module.Path}}/", ".")[0] // wherever the backend has its own copy
	allowed := []string{
		module + "cmd/outbox-publisher", module + "internal/env", module + "internal/httpserver", module + "internal/metrics", module + "internal/program",
		module + "internal/pubsub", module + "internal/outage",
		module + "pkg/enums", module + "pkg/outbox/payloads", module + "pkg/outbox/registry",
	}
	forbidden := []string{
		"github.com/packfinderz/outbox/consume", "github.com/packfinderz/outbox/consume/inbox",
		"gorm.io/", "github.com/redis/", "github.com/packfinderz/outbox/destinations/redis", "github.com/packfinderz/outbox/outboxgorm",
		"github.com/packfinderz/outbox/internal/testing/pgserver", "cloud.google.com/go/pubsub/v2/pstest", "github.com/pressly/goose", "testing",
	}
	dependencies := list(t, "-deps", ".")
	if !slices.Contains(dependencies, "github.com/packfinderz/outbox/pgstore") {
		t.Fatalf("the list is not that of the publisher: %s", dependencies)
	}
	for _, dependency := range dependencies {
		if strings.HasPrefix(dependency, module) && !slices.Contains(allowed, dependency) {
			t.Errorf("the publisher depends on %s", dependency)
		}
		for _, prefix := range forbidden {
			if dependency == prefix || strings.HasPrefix(dependency, strings.TrimSuffix(prefix, "/")+"/") {
				t.Errorf("the publisher depends on %s", dependency)
			}
		}
	}
}

// list is what go list answers.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
