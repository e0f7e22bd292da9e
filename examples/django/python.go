package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// pythonVariable names a Python that has Django and psycopg2, where it is not the one that is found.
const pythonVariable = "OUTBOX_PYTHON"

// findPython is a Python with Django and psycopg2. Packages of Debian are for the system's, which need not be the one in
// PATH. scripts/ensure-django looks in the same places.
func findPython(ctx context.Context) (string, error) {
	candidates := []string{"python3", "/usr/bin/python3"}
	if named := os.Getenv(pythonVariable); named != "" {
		candidates = []string{named}
	}
	for _, python := range candidates {
		if exec.CommandContext(ctx, python, "-c", "import django, psycopg2").Run() == nil { //nolint:gosec // whoever names a Python may run it
			return python, nil
		}
	}
	return "", errors.New("no Python has Django and psycopg2: run scripts/ensure-django, or install them (Debian: apt-get install " +
		"python3-django python3-psycopg2; others: pip install django psycopg2-binary), or set " + pythonVariable)
}
