package migrations_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/packfinderz/outbox/internal/migrations"
)

// TestRead has statements with semicolons inside, comments that end in one, and files that are not in the order of their names.
func TestRead(t *testing.T) {
	t.Parallel()
	const file = "-- +goose Up\nSELECT 1;\n-- +goose StatementBegin\nDO $$\nBEGIN;\nEND $$\n-- +goose StatementEnd\n" +
		"SELECT -- one;\n2;\n-- +goose StatementBegin\nlast;\n-- +goose StatementEnd\n-- a comment;\n-- +goose Down\nnever;\n"
	list, err := migrations.Read(fstest.MapFS{
		"10_last.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nSELECT 1;\n")}, "9_first_one.sql": {Data: []byte(file)},
	})
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if m := list[0]; m.Version != 9 || m.Name != "first_one" || m.NoTransaction || !slices.Equal(m.Down, []string{"never;"}) {
		t.Errorf("read %+v", m)
	}
	if m := list[1]; m.Version != 10 || !m.NoTransaction || len(m.Up) != 1 || len(m.Down) != 0 {
		t.Errorf("read %+v", m)
	}
	if got, want := list[0].Up, []string{"SELECT 1;", "DO $$\nBEGIN;\nEND $$", "SELECT -- one;\n2;", "last;"}; !slices.Equal(got[:2], want[:2]) || got[len(got)-1] != "last;" {
		t.Errorf("the statements are %q, want %q", got, want)
	}
}

// TestReadRefuses refuses what it does not know, rather than to apply half of a file.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for problem, file := range map[string]struct{ name, content string }{
		"version":         {"first.sql", "-- +goose Up\nSELECT 1;\n"},
		"unexpected line": {"1_a.sql", "-- +goose ENVSUB ON\n-- +goose Up\nSELECT 1;\n"},
		"no Up part":      {"1_a.sql", "SELECT 1;\n"},
		"that ends":       {"1_a.sql", "-- +goose Up\n-- +goose StatementBegin\nSELECT 1;\n"},
		"ends in":         {"1_a.sql", "-- +goose Up\nSELECT 1\n"},
	} {
		_, err := migrations.Read(fstest.MapFS{file.name: {Data: []byte(file.content)}})
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", problem, err)
		}
	}
}
