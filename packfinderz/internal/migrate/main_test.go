package migrate_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// api is what api migrate does. It returns the log.
func api(t *testing.T, url string) string {
	t.Helper()
	var log bytes.Buffer
	if err := migrate.Up(t.Context(), url, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatalf("api migrate: %v\n%s", err, log.String())
	}
	return log.String()
}

// program builds the outbox program, which stands beside the modules that the backend is built of.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outbox")
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/packfinderz/outbox").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(strings.TrimSpace(string(module)), "cmd/outbox"), "-o", path, ".")
	build.Env = append(os.Environ(), "GOWORK=") // the workspace that it stands in, wherever the backend is
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return path
}

// adopt is outbox migrate up --adopt. It returns the output.
func adopt(t *testing.T, program, url string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, "migrate", "up", "--layout", "packfinderz", "--adopt", "--from", url).CombinedOutput()
	if err != nil {
		t.Fatalf("outbox migrate up --adopt: %v\n%s", err, output)
	}
	return string(output)
}

// shape is all that a database holds of tables, except for those of goose: columns, indexes, constraints, triggers, functions, enums.
func shape(t *testing.T, pool *pgxpool.Pool) (text string) {
	t.Helper()
	const all = `
		SELECT coalesce(string_agg(line, E'\n' ORDER BY line COLLATE "C"), '') FROM (
			SELECT concat_ws(' ', table_name, column_name, udt_name, is_nullable, column_default) AS line
				FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '%goose%'
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename NOT LIKE '%goose%'
			UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
				FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text NOT LIKE '%goose%'
			UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
			UNION ALL SELECT concat_ws(' ', proname, prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			UNION ALL SELECT concat_ws(' ', enumtypid::regtype, enumlabel, row_number() OVER (PARTITION BY enumtypid ORDER BY enumsortorder))
				FROM pg_enum
		) lines`
	if err := pool.QueryRow(t.Context(), all).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
