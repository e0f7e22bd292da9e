package doorito_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/docpage"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/wake"
)

// page is the documentation of the layout.
const page = "../../docs/doorito.md"

// TestPlainInsert delivers a row with only the required columns, on the shipped table: the rest has defaults. A
// second row with its key is no error, and no second event.
func TestPlainInsert(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.handle("user.created", succeed)
	b.start()
	insert := documented(t, "any language")
	for range 2 {
		pgtest.Exec(t, b.pool, insert)
	}
	var id uuid.UUID
	if err := b.pool.QueryRow(t.Context(), `SELECT id FROM outbox_event`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	b.ended(b.await(id, "delivered", 0))
}

// TestDocumentedWakeUp sends the page's notification for a table of that name, and a relay's listener gets it.
func TestDocumentedWakeUp(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, `CREATE TABLE common_outboxevent ()`)
	ctx, stop := context.WithCancel(t.Context())
	heard, ended := make(chan string, 10), make(chan error, 1)
	go func() { ended <- wake.Listen(ctx, pool, "common_outboxevent", func(about string) { heard <- about }) }()
	if about := <-heard; about != wake.Missed { // it listens
		t.Errorf("heard %q first", about)
	}
	pgtest.Exec(t, pool, documented(t, "after the commit"))
	if about := <-heard; about != "" {
		t.Errorf("heard %q", about)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// documented returns the statement of docs/doorito.md that begins with a comment.
func documented(t *testing.T, comment string) string {
	t.Helper()
	for _, statement := range docpage.Blocks(t, page, "sql") {
		if first, _, _ := strings.Cut(statement, "\n"); strings.Contains(first, comment) {
			return statement
		}
	}
	t.Fatalf("%s has no statement with a comment %q", page, comment)
	return ""
}

// TestDocumentation checks that the page's Go is compiled and run here, and its Python in examples/django.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, page, "go", "example_test.go")
	const project = "../../examples/django/"
	docpage.Holds(t, page, "python", project+"uploads/views.py", project+"uploads/handlers.py", project+"without_django.py")
}
