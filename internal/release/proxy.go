package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// file is a file of the tree in a module's zip.
type file struct {
	within string // the module
	onDisk string
}

func (f file) Path() string                 { return f.within }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.onDisk) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.onDisk) }

// files are those of each module, by its folder, as the working tree has them, committed or not.
func (t *tree) files(ctx context.Context) (map[string][]zip.File, error) {
	listed, err := t.git(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := make(map[string][]zip.File)
	for name := range strings.SplitSeq(strings.TrimRight(listed, "\x00"), "\x00") {
		onDisk := filepath.Join(t.root, name)
		if info, err := os.Lstat(onDisk); err != nil || !info.Mode().IsRegular() {
			continue // deleted, or no file
		}
		folder := t.moduleOf(name)
		if name == path.Join(folder, "go.mod") {
			continue // it is written with the version of the check
		}
		within := name
		if folder != "." {
			within = strings.TrimPrefix(name, folder+"/")
		}
		files[folder] = append(files[folder], file{within, onDisk})
	}
	return files, nil
}

// publish makes a module proxy in a folder, with every module that is released.
func (t *tree) publish(proxy string, files map[string][]zip.File) error {
	for _, m := range t.modules {
		if m.released() {
			if err := t.put(proxy, m, files[m.folder]); err != nil {
				return fmt.Errorf("publish %s: %w", m.path(), err)
			}
		}
	}
	return nil
}

// moduleOf is the folder of the module that a file is part of.
func (t *tree) moduleOf(name string) string {
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if _, err := os.Stat(filepath.Join(t.root, folder, "go.mod")); err == nil || folder == "." {
			return folder
		}
	}
}

// put writes the four files of a version.
func (t *tree) put(proxy string, m gomod, files []zip.File) (err error) {
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"list":              t.version + "\n",
		t.version + ".info": fmt.Sprintf("{\"Version\":%q}\n", t.version),
		t.version + ".mod":  string(text),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	files = append(files, file{"go.mod", filepath.Join(folder, t.version+".mod")})
	out, err := os.Create(filepath.Join(folder, t.version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.Create(out, module.Version{Path: m.path(), Version: t.version}, files); err != nil {
		_ = out.Close() // it says less
		return err
	}
	return out.Close()
}
