package pgstore

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// FuzzIdentifier holds the quoting against PostgreSQL: a name that is taken must be
// exactly the name the server reads, as an identifier and as a string.
func FuzzIdentifier(f *testing.F) {
	conn, err := pgx.Connect(context.Background(), pgtest.URL(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, seed := range []string{
		"outbox", `a"b`, `"; DROP TABLE x; --`, "a b", "é", `\`, `'`, `''`, "$1", "$$", "/*", "\n", "\x00", "", "\xff",
		strings.Repeat("x", 63), strings.Repeat("x", 64), "U&", `E'`, "select", "A",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if sqlname.Problem(name) != "" {
			return
		}
		if name == "" || len(name) > 63 || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			t.Fatalf("%q was taken", name)
		}
		rows, err := conn.Query(context.Background(), "SELECT "+literal(name)+" AS "+quote(name))
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		defer rows.Close()
		fields := rows.FieldDescriptions()
		if len(fields) != 1 || fields[0].Name != name {
			t.Fatalf("%q became the identifier %q", name, fields[0].Name)
		}
		var text string
		if !rows.Next() {
			t.Fatalf("%q: %v", name, rows.Err())
		}
		if err := rows.Scan(&text); err != nil || text != name {
			t.Fatalf("%q became the string %q (%v)", name, text, err)
		}
	})
}
