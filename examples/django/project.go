package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// superuser is the name of the person at the admin.
const superuser = "admin"

// project is the Django project, with an environment to run its commands in.
type project struct {
	python, folder string
	database       string // its URL
	environment    []string
	listen         string
	password       string // the superuser's
}

// newProject makes an environment with secrets of its own.
func newProject(ctx context.Context, database, program, listen string) (*project, error) {
	python, err := findPython(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := findFolder()
	if err != nil {
		return nil, err
	}
	p := &project{python: python, folder: folder, database: database, listen: listen, password: rand.Text()}
	for _, variable := range os.Environ() {
		// Settings and flags must not be set behind our back.
		if !strings.HasPrefix(variable, "OUTBOX_") && !strings.HasPrefix(variable, "DJANGO_") {
			p.environment = append(p.environment, variable)
		}
	}
	p.environment = append(p.environment,
		"DATABASE_URL="+database, "OUTBOX_PROGRAM="+program,
		"OUTBOX_TO=http://"+listen+"/outbox/events#allow-private=true", "OUTBOX_WEBHOOK_SECRET="+newSecret(),
		"DJANGO_DEBUG=1", "DJANGO_SECRET_KEY="+newSecret(),
		"DJANGO_SUPERUSER_USERNAME="+superuser, "DJANGO_SUPERUSER_PASSWORD="+p.password, "DJANGO_SUPERUSER_EMAIL=admin@example.com",
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
	return p, nil
}

// findFolder is the project's folder, from the repository's or from itself.
func findFolder() (string, error) {
	for _, folder := range []string{".", filepath.Join("examples", "django"), "django"} {
		if _, err := os.Stat(filepath.Join(folder, "manage.py")); err == nil {
			return folder, nil
		}
	}
	return "", errors.New("there is no examples/django/manage.py here: run it in the folder of the repository")
}

// newSecret is one that can sign requests.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// manage runs a command of manage.py to its end, and returns what it printed.
func (p *project) manage(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.python, append([]string{"manage.py"}, args...)...)
	cmd.Dir, cmd.Env = p.folder, p.environment
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("manage.py %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// prepare makes the tables and the superuser.
func (p *project) prepare(ctx context.Context) error {
	for _, args := range [][]string{
		{"migrate"},
		{"outbox", "migrate", "up", "--adopt"},
		{"createsuperuser", "--noinput"},
	} {
		if _, err := p.manage(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
