package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	rootMod  = "module example.com/shop\n\ngo 1.26.0\n"
	kafkaMod = "module example.com/shop/kafka\n\ngo 1.26.0\n\nrequire (\n\texample.com/other v1.0.0\n\texample.com/shop v0.1.0\n)\n"
	benchMod = "module example.com/shop/bench\n\ngo 1.26.0\n\nrequire example.com/shop/kafka v0.1.0 // indirect\n"
	work     = "go 1.26.0\n\nuse (\n\t.\n\t./bench\n\t./kafka\n)\n\n// Why.\nreplace (\n\texample.com/shop v0.1.0 => ./\n\texample.com/shop/kafka v0.1.0 => ./kafka\n)\n"
	log      = "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n"
)

// repository is a committed tree of three modules, one of which is not released, with changes to its files.
func repository(t *testing.T, changes map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": rootMod, "kafka/go.mod": kafkaMod, "bench/go.mod": benchMod, "go.work": work, "CHANGELOG.md": log,
	} {
		if changed, ok := changes[name]; ok {
			content = changed
		}
		write(t, filepath.Join(root, name), content)
	}
	git(t, root, "init", "--quiet")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "-m", "Begin")
	return root
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// prepare does what make release does.
func prepare(t *testing.T, root, version string) (said string, err error) {
	t.Helper()
	tree, err := openTree(root)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = tree.prepare(t.Context(), version, time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC), &out)
	return out.String(), err
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	root := repository(t, nil)
	said, err := prepare(t, root, "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]string{"go.mod": rootMod, "kafka/go.mod": kafkaMod, "bench/go.mod": benchMod, "go.work": work} {
		if got, want := read(t, filepath.Join(root, name)), strings.ReplaceAll(before, "v0.1.0", "v0.2.0"); got != want {
			t.Errorf("%s is\n%swant\n%s", name, got, want)
		}
	}
	want := strings.Replace(log, "## [Unreleased]", "## [Unreleased]\n\n## [0.2.0] - 2026-02-03", 1)
	if got := read(t, filepath.Join(root, "CHANGELOG.md")); got != want {
		t.Errorf("the changelog is\n%s", got)
	}
	if !strings.Contains(said, "git push --atomic origin HEAD v0.2.0 kafka/v0.2.0\n") || strings.Contains(said, "bench") {
		t.Errorf("it says\n%s", said)
	}
}

// TestPrepareRefuses finds what is wrong before it writes a file.
func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	for words, test := range map[string]struct {
		version string
		changes map[string]string
		then    func(root string)
	}{
		"is no version":           {version: "1.2.3"},
		"is no version; it":       {version: "v1.2"},
		"paths that end in /v2":   {version: "v2.0.0"},
		"is lower than":           {version: "v0.0.9"},
		"has version 0.1.0":       {version: "v0.1.0"},
		"is not above v0.3.0":     {version: "v0.2.0", then: func(root string) { git(t, root, "tag", "v0.3.0") }},
		"the working tree has":    {version: "v0.2.0", then: func(root string) { write(t, filepath.Join(root, "new"), "") }},
		"no heading":              {version: "v0.2.0", changes: map[string]string{"CHANGELOG.md": "# Changelog\n"}},
		"replaces example.com":    {version: "v0.2.0", changes: map[string]string{"kafka/go.mod": kafkaMod + "replace example.com/shop => ../\n"}},
		"and go.work has v0.1.0":  {version: "v0.2.0", changes: map[string]string{"kafka/go.mod": strings.ReplaceAll(kafkaMod, "v0.1.0", "v0.0.7")}},
		"which is never released": {version: "v0.2.0", changes: map[string]string{"go.mod": rootMod + "require example.com/shop/bench v0.1.0\n"}},
	} {
		root := repository(t, test.changes)
		if test.then != nil {
			test.then(root)
		}
		before := read(t, filepath.Join(root, "go.work"))
		if _, err := prepare(t, root, test.version); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
		if read(t, filepath.Join(root, "go.work")) != before {
			t.Errorf("%s: a refusal wrote something", words)
		}
	}
}
