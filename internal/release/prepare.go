package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// prepare raises the version of all modules, writes the heading of the changelog, and says what is left to do.
func (t *tree) prepare(ctx context.Context, version string, now time.Time, out io.Writer) error {
	if err := t.refuse(ctx, version); err != nil {
		return err
	}
	log := filepath.Join(t.root, "CHANGELOG.md")
	text, err := os.ReadFile(log)
	if err != nil {
		return fmt.Errorf("read the changelog: %w", err)
	}
	headed, err := heading(string(text), version, now)
	if err != nil {
		return err
	}
	if err := t.raise(version); err != nil {
		return err
	}
	if err := os.WriteFile(log, []byte(headed), 0o600); err != nil {
		return fmt.Errorf("write the changelog: %w", err)
	}
	t.explain(version, out)
	return nil
}

// refuse looks at everything that could be wrong before a file is written.
func (t *tree) refuse(ctx context.Context, version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("%q is no version; it looks like v1.2.3", version)
	case semver.Major(version) != "v0" && semver.Major(version) != "v1":
		return fmt.Errorf("version %s needs module paths that end in /%s", version, semver.Major(version))
	case semver.Compare(version, t.version) < 0:
		return fmt.Errorf("version %s is lower than %s, which the modules have", version, t.version)
	}
	dirty, err := t.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if dirty != "" {
		return fmt.Errorf("the working tree has changes; commit them first:\n%s", strings.TrimRight(dirty, "\n"))
	}
	tags, err := t.git(ctx, "tag", "--list", "v*")
	if err != nil {
		return err
	}
	for tag := range strings.FieldsSeq(tags) {
		if semver.Compare(version, tag) <= 0 {
			return fmt.Errorf("version %s is not above %s, which is released", version, tag)
		}
	}
	return t.consistent()
}

var unreleased = regexp.MustCompile(`(?m)^## \[?Unreleased\]?$`)

// heading puts the version over what is unreleased.
func heading(changelog, version string, now time.Time) (string, error) {
	number := strings.TrimPrefix(version, "v")
	if strings.Contains(changelog, "\n## ["+number+"]") {
		return "", fmt.Errorf("the changelog has version %s already", number)
	}
	place := unreleased.FindStringIndex(changelog)
	if place == nil {
		return "", errors.New("the changelog has no heading ## [Unreleased]")
	}
	return changelog[:place[0]] + "## [Unreleased]\n\n## [" + number + "] - " + now.UTC().Format(time.DateOnly) + changelog[place[1]:], nil
}

// raise writes the version into every go.mod and go.work.
func (t *tree) raise(version string) error {
	was := t.version
	if err := t.require(version); err != nil {
		return err
	}
	for _, m := range t.modules {
		text, err := m.file.Format()
		if err == nil {
			err = os.WriteFile(filepath.Join(t.root, m.folder, "go.mod"), text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write the go.mod of %s: %w", m.folder, err)
		}
	}
	for _, replace := range t.work.Replace {
		// The line stays where it is; dropping and adding would move it.
		for i, word := range replace.Syntax.Token {
			if word == was {
				replace.Syntax.Token[i] = version
			}
		}
	}
	if err := os.WriteFile(filepath.Join(t.root, "go.work"), modfile.Format(t.work.Syntax), 0o600); err != nil {
		return fmt.Errorf("write go.work: %w", err)
	}
	return nil
}

// explain says what is left to do by hand.
func (t *tree) explain(version string, out io.Writer) {
	var tags []string
	for _, m := range t.modules {
		if m.released() {
			tags = append(tags, m.tag(version))
		}
	}
	_, _ = fmt.Fprintf(out, "The files name version %s; nothing is committed. Check them, then:\n\n  .ci/run\n  git commit -a -m 'Release %s'\n", version, version)
	for _, tag := range tags {
		_, _ = fmt.Fprintf(out, "  git tag -a %s -m %s\n", tag, tag)
	}
	_, _ = fmt.Fprintf(out, "  git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
}
