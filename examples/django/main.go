// Django runs the Django project of this folder on a private PostgreSQL, with the outbox program as its relay, until
// Ctrl-C. The project itself is Python and needs nothing of this program; README.md says how to run it by hand.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/packfinderz/outbox/examples/internal/database"
)

func main() {
	database.RunKeeperIfAsked()
	listen := flag.String("listen", "127.0.0.1:8000", "`address` for Django to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *listen, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "django:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, listen string, out io.Writer) error {
	folder, err := os.MkdirTemp("", "outbox-django-")
	if err != nil {
		return fmt.Errorf("make a folder for the program: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is in the system's folder for such
	program, err := build(ctx, folder)
	if err != nil {
		return err
	}
	db, err := database.Open(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is to be kept
	p, err := newProject(ctx, db.URL, program, listen)
	if err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	return p.serve(ctx, out, func() {
		_, _ = fmt.Fprintf(out, "\nStore a file:  curl -F file=@README.md http://%s/files\n", listen)
		_, _ = fmt.Fprintf(out, "See its event: http://%s/admin/common/outboxevent/ as %s with password %s\n\n", listen, superuser, p.password)
	})
}

// build builds the outbox program into a folder.
func build(ctx context.Context, folder string) (string, error) {
	program := filepath.Join(folder, "outbox")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/packfinderz/outbox/cmd/outbox")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the outbox program: %w\n%s", err, output)
	}
	return program, nil
}
