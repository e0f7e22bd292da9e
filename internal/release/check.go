package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The files of somebody else's module. They have no go.mod: go mod tidy finds what they need.
//
//go:embed testdata/stranger
var stranger embed.FS

// testOnly are parts of the names of packages and modules that no program of a stranger may link.
var testOnly = []string{"nats-server", "kfake", "pstest", "chromedp", "goleak", "rapid"}

// unwanted are modules that a stranger should not even download, although our own tests need them, and why one is
// downloaded nevertheless: go mod tidy reads the tests of every package that it finds. An exception that is no longer
// needed fails the check, so that it does not stay.
var unwanted = map[string]string{
	"github.com/chromedp/chromedp":       "",
	"github.com/nats-io/nats-server/v2":  "the tests of destinations/natsjs start it, and are part of that module",
	"github.com/twmb/franz-go/pkg/kfake": "the tests of destinations/kafka start it, and are part of that module",
}

// check installs the program and builds a stranger's module, from module zips of the working tree.
func (t *tree) check(ctx context.Context, out io.Writer) (err error) {
	if err := t.consistent(); err != nil {
		return err
	}
	files, err := t.files(ctx)
	if err != nil {
		return err
	}
	if err := t.renumber(files); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "outbox-install-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	proxy := filepath.Join(work, "proxy")
	if err := t.publish(proxy, files); err != nil {
		return err
	}
	known, err := goEnv(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.forget(known.modules)) }()
	s := &session{folder: filepath.Join(work, "stranger"), env: environment(known, work, proxy), out: out}
	if err := os.MkdirAll(s.folder, 0o750); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if err := t.install(ctx, s, filepath.Join(work, "bin", "outbox")); err != nil {
		return err
	}
	return t.use(ctx, s)
}

// session runs commands in a stranger's folder.
type session struct {
	folder string
	env    []string
	out    io.Writer
}

// run runs a command, says how long it took, and returns what it printed.
func (s *session) run(ctx context.Context, name string, args ...string) (string, error) {
	start := time.Now()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = s.folder, s.env
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	line := filepath.Base(name) + " " + strings.Join(args, " ")
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", line, err, out, stderr.String())
	}
	_, _ = fmt.Fprintf(s.out, "%5.1f s  %s\n", time.Since(start).Seconds(), line)
	return string(out), nil
}

// install installs the program as the README says, and asks it for its version.
func (t *tree) install(ctx context.Context, s *session, program string) error {
	if _, err := s.run(ctx, "go", "install", t.modules[0].path()+"/cmd/outbox@"+t.version); err != nil {
		return err
	}
	said, err := s.run(ctx, program, "version")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(said, "outbox "+t.version+" ") {
		return fmt.Errorf("outbox version says %q, want %s", said, t.version)
	}
	linked, err := s.run(ctx, "go", "version", "-m", program)
	if err != nil {
		return err
	}
	return refuseLinked("the program", linked)
}

// use builds, checks and tests a stranger's module.
func (t *tree) use(ctx context.Context, s *session) error {
	files, err := fs.Sub(stranger, "testdata/stranger")
	if err == nil {
		err = writeFiles(s.folder, files)
	}
	if err != nil {
		return err
	}
	// What our own modules say of others need not be asked of the checksum database again; go mod tidy drops what is not needed.
	if err := t.copySums(filepath.Join(s.folder, "go.sum")); err != nil {
		return err
	}
	require := []string{"mod", "edit"}
	for _, m := range t.modules {
		if m.released() {
			require = append(require, "-require="+m.path()+"@"+t.version)
		}
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/stranger"}, require, {"mod", "tidy"}, {"build", "./..."}, {"vet", "./..."}, {"test", "./..."},
	} {
		if _, err := s.run(ctx, "go", args...); err != nil {
			return err
		}
	}
	linked, err := s.run(ctx, "go", "list", "-deps", "./...")
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(s.folder, "go.sum"))
	if err != nil {
		return fmt.Errorf("read the stranger's go.sum: %w", err)
	}
	return errors.Join(refuseLinked("the stranger's module", linked), refuseDownloaded(string(sums), unwanted, s.out))
}

// refuseLinked finds what only tests need in a list of packages or modules. A list without the clients of NATS and Kafka is
// not the one that was meant, and proves nothing.
func refuseLinked(who, linked string) error {
	var problems []error
	for _, client := range []string{"github.com/nats-io/nats.go", "github.com/twmb/franz-go"} {
		if !strings.Contains(linked, client) {
			problems = append(problems, fmt.Errorf("%s does not link %s", who, client))
		}
	}
	for dependency := range strings.FieldsSeq(linked) {
		for _, test := range testOnly {
			if strings.Contains(dependency, test) {
				problems = append(problems, fmt.Errorf("%s links %s", who, dependency))
			}
		}
	}
	return errors.Join(problems...)
}

// refuseDownloaded finds modules whose zip was needed, and exceptions that are not: the line of a go.mod alone has /go.mod
// behind its version.
func refuseDownloaded(sums string, unwanted map[string]string, out io.Writer) error {
	downloaded := make(map[string]bool)
	for line := range strings.Lines(sums) {
		fields := strings.Fields(line)
		if len(fields) == 3 && !strings.HasSuffix(fields[1], "/go.mod") {
			downloaded[fields[0]] = true
		}
	}
	var problems []error
	for module, reason := range unwanted {
		switch {
		case downloaded[module] && reason == "":
			problems = append(problems, fmt.Errorf("the stranger downloads %s", module))
		case downloaded[module]:
			_, _ = fmt.Fprintf(out, "known: go mod tidy downloads %s: %s\n", module, reason)
		case reason != "":
			problems = append(problems, fmt.Errorf("the stranger does not download %s any more; take the exception out", module))
		}
	}
	return errors.Join(problems...)
}

// copySums writes the go.sum files of all modules into one.
func (t *tree) copySums(to string) error {
	var all strings.Builder
	for _, m := range t.modules {
		sums, err := os.ReadFile(filepath.Join(t.root, m.folder, "go.sum"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the go.sum of %s: %w", m.folder, err)
		}
		all.Write(sums)
	}
	if err := os.WriteFile(to, []byte(all.String()), 0o600); err != nil {
		return fmt.Errorf("write the stranger's go.sum: %w", err)
	}
	return nil
}

// writeFiles copies the stranger's files; they end in .txt here, so that they are no package of ours.
func writeFiles(folder string, files fs.FS) error {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, strings.TrimSuffix(name, ".txt")), content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write the stranger's files: %w", err)
		}
	}
	return nil
}
