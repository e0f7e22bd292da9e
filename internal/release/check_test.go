package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	modzip "golang.org/x/mod/zip"
)

// TestPublish reads the zips of a proxy: each module has its own files, and requires the version of the check.
func TestPublish(t *testing.T) {
	t.Parallel()
	root := repository(t, nil)
	write(t, filepath.Join(root, "kafka", "kafka.go"), "package kafka\n") // not committed
	tree, files := renumbered(t, root)
	if !regexp.MustCompile(`^v0\.1\.0-check-[0-9a-f]{12}$`).MatchString(tree.version) {
		t.Fatalf("the version of the check is %s", tree.version)
	}
	proxy := t.TempDir()
	if err := tree.publish(proxy, files); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(proxy, "example.com", "shop", "bench")); err == nil {
		t.Error("a module that is not released was published")
	}
	archive, err := zip.OpenReader(filepath.Join(proxy, "example.com", "shop", "kafka", "@v", tree.version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	prefix := "example.com/shop/kafka@" + tree.version + "/"
	if _, err := archive.Open(prefix + "kafka.go"); err != nil {
		t.Error(err)
	}
	file, err := archive.Open(prefix + "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "example.com/shop "+tree.version) || !strings.Contains(string(text), "example.com/other v1.0.0") {
		t.Errorf("the go.mod in the zip:\n%s", text)
	}
	if read(t, filepath.Join(root, "kafka", "go.mod")) != kafkaMod {
		t.Error("the go.mod in the tree was changed")
	}
}

// TestRenumber has a version of its own for every content, new files included: go would not see them in a version that it
// knows.
func TestRenumber(t *testing.T) {
	t.Parallel()
	root := repository(t, nil)
	seen := make(map[string]string)
	for _, change := range []struct{ what, file, content string }{
		{"nothing", "go.mod", rootMod},
		{"a new file", "shop.go", "package shop\n"},
		{"other words in it", "shop.go", "package shops\n"},
		{"the file in another module", "kafka/shop.go", "package shop\n"},
		{"a requirement", "kafka/go.mod", strings.ReplaceAll(kafkaMod, "v1.0.0", "v1.0.1")},
	} {
		write(t, filepath.Join(root, change.file), change.content)
		tree, _ := renumbered(t, root)
		if before, ok := seen[tree.version]; ok {
			t.Errorf("%s changed, and the version is that of before: %s", change.what, before)
		}
		seen[tree.version] = change.what
		if again, _ := renumbered(t, root); again.version != tree.version {
			t.Errorf("%s: the versions of one content are %s and %s", change.what, tree.version, again.version)
		}
	}
}

// renumbered is a tree with the version of the check, and its files.
func renumbered(t *testing.T, root string) (*tree, map[string][]modzip.File) {
	t.Helper()
	tree, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := tree.files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.renumber(files); err != nil {
		t.Fatal(err)
	}
	return tree, files
}

// TestForget leaves nothing of the check in a cache of modules, and everything else.
func TestForget(t *testing.T) {
	t.Parallel()
	tree, _ := renumbered(t, repository(t, nil))
	cache := t.TempDir()
	downloads := filepath.Join("cache", "download", "example.com", "shop", "kafka", "@v")
	own := []string{
		filepath.Join("example.com", "shop", "kafka@"+tree.version, "kafka.go"),
		filepath.Join(downloads, tree.version+".zip"), filepath.Join(downloads, tree.version+".mod"), filepath.Join(downloads, "list"),
	}
	others := []string{filepath.Join("example.com", "shop", "kafka@v0.1.0", "kafka.go"), filepath.Join(downloads, "v0.1.0.zip")}
	for _, name := range append(own, others...) {
		write(t, filepath.Join(cache, name), "")
	}
	for range 2 { // the second time there is nothing to do
		if err := tree.forget(cache); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range own {
		if _, err := os.Stat(filepath.Join(cache, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(cache, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestStrangerRefuses finds what a stranger must not link or download.
func TestStrangerRefuses(t *testing.T) {
	t.Parallel()
	const clients = "fmt\ngithub.com/nats-io/nats.go\ngithub.com/twmb/franz-go/pkg/kgo\n"
	for linked, want := range map[string]string{
		clients: "",
		clients + "github.com/nats-io/nats-server/v2/server\n": "the program links github.com/nats-io/nats-server",
		"fmt\ngithub.com/nats-io/nats.go\n":                    "the program does not link github.com/twmb/franz-go",
		"":                                                     "the program does not link github.com/nats-io/nats.go",
	} {
		err := refuseLinked("the program", linked)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", linked, err, want)
		}
	}
	const line = "github.com/nats-io/nats-server/v2 v2.15.2"
	for name, test := range map[string]struct {
		sums, reason string
		fails        bool
	}{
		"the go.mod alone":                    {line + "/go.mod h1:x=\n", "", false},
		"the module":                          {line + " h1:x=\n", "", true},
		"the module, for a reason":            {line + " h1:x=\n", "why", false},
		"a reason for what is not downloaded": {line + "/go.mod h1:x=\n", "why", true},
	} {
		err := refuseDownloaded(test.sums, map[string]string{"github.com/nats-io/nats-server/v2": test.reason}, io.Discard)
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
