package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// tree is the repository: the modules of its workspace, which have one version.
type tree struct {
	root    string
	work    *modfile.WorkFile
	version string // which the modules require of each other
	modules []gomod
}

// gomod is one module.
type gomod struct {
	folder string // within the root, with slashes; "." for the root
	file   *modfile.File
}

func (m gomod) path() string { return m.file.Module.Mod.Path }

// released tells the modules that people use from those that test, measure or show them.
func (m gomod) released() bool {
	first, _, _ := strings.Cut(m.folder, "/")
	return first != "bench" && first != "examples" && first != "internal"
}

// tag is what a version of the module is called in git.
func (m gomod) tag(version string) string { return path.Join(m.folder, version) }

// openTree reads the workspace at root.
func openTree(root string) (*tree, error) {
	file := filepath.Join(root, "go.work")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	t := &tree{root: root}
	if t.work, err = modfile.ParseWork(file, text, nil); err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	for _, use := range t.work.Use {
		m := gomod{folder: path.Clean(use.Path)}
		file := filepath.Join(root, m.folder, "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a module: %w", err)
		}
		if m.file, err = modfile.Parse(file, text, nil); err != nil {
			return nil, fmt.Errorf("read a module: %w", err)
		}
		t.modules = append(t.modules, m)
	}
	for _, replace := range t.work.Replace {
		if t.version == "" {
			t.version = replace.Old.Version
		}
		if replace.Old.Version != t.version {
			return nil, fmt.Errorf("go.work names two versions, %s and %s", t.version, replace.Old.Version)
		}
	}
	if !semver.IsValid(t.version) {
		return nil, errors.New("go.work replaces no version of the modules")
	}
	return t, nil
}

// consistent refuses modules that would not work without the workspace.
func (t *tree) consistent() error {
	own := make(map[string]bool)
	for _, m := range t.modules {
		own[m.path()] = m.released()
	}
	var problems []error
	for _, m := range t.modules {
		for _, replace := range m.file.Replace {
			problems = append(problems, fmt.Errorf("%s/go.mod replaces %s, which nobody who requires it sees", m.folder, replace.Old.Path))
		}
		for _, require := range m.file.Require {
			released, is := own[require.Mod.Path]
			switch {
			case !is:
			case require.Mod.Version != t.version:
				problems = append(problems, fmt.Errorf("%s/go.mod requires %s, and go.work has %s", m.folder, require.Mod, t.version))
			case m.released() && !released:
				problems = append(problems, fmt.Errorf("%s/go.mod requires %s, which is never released", m.folder, require.Mod.Path))
			}
		}
	}
	return errors.Join(problems...)
}

// require has the modules require another version of each other. It writes no file.
func (t *tree) require(version string) error {
	own := make(map[string]bool)
	for _, m := range t.modules {
		own[m.path()] = true
	}
	for _, m := range t.modules {
		for _, require := range m.file.Require {
			if own[require.Mod.Path] {
				if err := m.file.AddRequire(require.Mod.Path, version); err != nil {
					return fmt.Errorf("require %s of %s: %w", version, m.folder, err)
				}
			}
		}
	}
	t.version = version
	return nil
}

// git is what a git command prints.
func (t *tree) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", args...)
	git.Dir = t.root
	out, err := git.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
