package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// goSettings are what go is told where the check is run.
type goSettings struct{ proxy, modules, flags string }

func goEnv(ctx context.Context) (goSettings, error) {
	var values [3]string
	for i, name := range []string{"GOPROXY", "GOMODCACHE", "GOFLAGS"} {
		out, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return goSettings{}, fmt.Errorf("go env %s: %w", name, err)
		}
		values[i] = strings.TrimSpace(string(out))
	}
	return goSettings{values[0], values[1], values[2]}, nil
}

// environment has go find our modules in the proxy, and others where it always does. The cache of modules and the flags are
// those of whoever runs this: a package is compiled anew when its folder or a flag is another, and the brokers' SDKs
// take minutes. Our own modules cannot be in that cache, because nobody has their version; see renumber.
func environment(known goSettings, work, proxy string) []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS="+strings.TrimSpace(known.flags+" -mod=mod -modcacherw"),
		"GOPROXY=file://"+proxy+","+known.proxy,
		// Only our own modules are unknown to the checksum database.
		"GONOSUMDB=github.com/packfinderz/outbox", "GOBIN="+filepath.Join(work, "bin"))
}

// renumber gives the modules a version for the check that is never released. It is another one for every content and every
// working tree: go takes what is in its cache of modules as it was when it first saw that version.
func (t *tree) renumber(files map[string][]zip.File) error {
	root, err := filepath.Abs(t.root)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, root) // a hash takes everything
	for _, m := range t.modules {
		text, err := m.file.Format()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(sum, "%s\n%s\n", m.path(), text)
		for _, file := range files[m.folder] {
			if err := hashFile(sum, file); err != nil {
				return fmt.Errorf("read the files of %s: %w", m.folder, err)
			}
		}
	}
	return t.require(fmt.Sprintf("%s-check-%x", t.version, sum.Sum(nil)[:6]))
}

func hashFile(sum io.Writer, file zip.File) error {
	in, err := file.Open()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(in)
	if err != nil {
		_ = in.Close() // it says less
		return err
	}
	_, _ = fmt.Fprintf(sum, "%s %d\n%s", file.Path(), len(content), content)
	return in.Close()
}

// forget removes the modules of this version from a cache of modules.
func (t *tree) forget(cache string) error {
	var problems []error
	for _, m := range t.modules {
		if !m.released() {
			continue
		}
		escaped, err := module.EscapePath(m.path())
		if err != nil {
			return err
		}
		place := filepath.FromSlash(escaped)
		problems = append(problems, os.RemoveAll(filepath.Join(cache, place+"@"+t.version)))
		downloads := filepath.Join(cache, "cache", "download", place, "@v")
		files, err := filepath.Glob(filepath.Join(downloads, t.version+".*"))
		if err != nil {
			return err
		}
		// The list names the version; go writes it anew.
		for _, file := range append(files, filepath.Join(downloads, "list")) {
			if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, err)
			}
		}
	}
	return errors.Join(problems...)
}
