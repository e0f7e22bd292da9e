package packfinderz_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// top is the top of the repository.
const top = "../.."

// A value that is added only to an enum does not pass make lint: an event type needs its place among the event
// types and its line in the registry, with topic, aggregate and payload; an aggregate type and a reason need their
// places. The test runs the linter on a copy of the code with such values; make lint shows that the code itself
// passes.
func TestAnEnumValueWithoutARouteFailsTheLint(t *testing.T) {
	t.Parallel()
	copied := t.TempDir()
	copyCode(t, copied)
	addConstant(t, filepath.Join(copied, "packfinderz/pkg/enums/enums.go"), `AdDailyRollupReady EventType = "ad_daily_rollup_ready"`,
		`OrderTeleported EventType = "order_teleported"`)
	addConstant(t, filepath.Join(copied, "packfinderz/pkg/enums/enums.go"), `AggregateType = "ad"`, `AggregateTeleport AggregateType = "teleport"`)
	addConstant(t, filepath.Join(copied, "failure.go"), `Reason = "invalid_row"`, `ReasonTeleported Reason = "teleported"`)
	output, err := lint(t, copied)
	if err == nil {
		t.Fatalf("three values that nobody knows pass:\n%s", output)
	}
	for _, found := range []string{
		`packfinderz/pkg/enums/enums\.go:\d+:\d+: missing keys in map of key type enums\.EventType: enums\.OrderTeleported`,
		`packfinderz/pkg/enums/enums\.go:\d+:\d+: missing keys in map of key type enums\.AggregateType: enums\.AggregateTeleport`,
		`layouts/packfinderz/enums\.go:\d+:\d+: missing keys in map of key type outbox\.Reason: outbox\.ReasonTeleported`,
		`packfinderz/pkg/outbox/registry/registry\.go:\d+:\d+: missing keys in map of key type enums\.EventType: enums\.OrderTeleported`,
	} {
		if !regexp.MustCompile(found).MatchString(output) {
			t.Errorf("the linter does not say %s:\n%s", found, output)
		}
	}
}

// copyCode copies what the linter reads.
func copyCode(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, top+string(filepath.Separator))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".tools", "bin", "docs", "node_modules"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// addConstant writes one more constant after another.
func addConstant(t *testing.T, file, after, constant string) {
	t.Helper()
	before := read(t, file)
	content := strings.Replace(before, after+"\n", after+"\n\t"+constant+"\n", 1)
	if content == before {
		t.Fatalf("%s has no %s", file, after)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lint runs make lint's linter, with the repository's settings, and returns what it says about enums.
func lint(t *testing.T, folder string) (output string, err error) {
	t.Helper()
	version := regexp.MustCompile(`(?m)^GOLANGCI_VERSION := (\S+)$`).FindStringSubmatch(read(t, filepath.Join(top, "Makefile")))
	if version == nil {
		t.Fatal("the Makefile names no version of the linter")
	}
	tool, err := filepath.Abs(filepath.Join(top, ".tools", "golangci-lint-"+version[1]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		build := exec.CommandContext(t.Context(), "make", "-C", top, filepath.Join(".tools", filepath.Base(tool)))
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the linter: %v\n%s", err, output)
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, "run", "--enable-only", "exhaustive", "--allow-parallel-runners",
		"./layouts/packfinderz", "./packfinderz/pkg/enums", "./packfinderz/pkg/outbox/registry")
	cmd.Dir = folder
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
