//go:build unix && !aix && !solaris

package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNoBinaries(t *testing.T) {
	t.Setenv(binEnv, t.TempDir())
	_, err := Start(t.Context(), Config{})
	if !errors.Is(err, ErrNoBinaries) {
		t.Fatalf("got %v, want ErrNoBinaries", err)
	}
	if text := err.Error(); !strings.Contains(text, "apt-get install postgresql") || strings.Contains(text, "\n") {
		t.Errorf("the message is no one-line hint: %s", text)
	}
}

func TestBinariesFoundInPath(t *testing.T) {
	t.Setenv(binEnv, "")
	t.Setenv(versionEnv, "")
	t.Setenv("PATH", "")
	installed, err := findBinaries()
	if err != nil {
		t.Fatal(err)
	}
	// Some distributions have links in PATH to programs that stand elsewhere.
	links := t.TempDir()
	if err := os.Symlink(filepath.Join(installed, "initdb"), filepath.Join(links, "initdb")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	found, err := findBinaries()
	if err != nil || found != installed {
		t.Errorf("got %q, %v, want %q", found, err, installed)
	}
}

func TestNewestVersionFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"9.6", "17", "15", "other"} {
		if err := os.MkdirAll(filepath.Join(root, version, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, dir := range newestFirst(root + "/*/bin") {
		got = append(got, filepath.Base(filepath.Dir(dir)))
	}
	if want := []string{"17", "15", "9.6", "other"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
