package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// ternDown parts the two ways of tern.
const ternDown = "---- create above / drop below ----"

// TestMigratePrint applies the files of every tool as the tool would, and compares the schema with that of migrate up.
func TestMigratePrint(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][]string{
		"standard": {"--slots", "4", "--shards", "2"}, "doorito": {"--layout", "doorito", "--table", `common_"events`},
		"modkit": {"--layout", "modkit"}, "packfinderz": {"--layout", "packfinderz"}, "audit": {"--audit"},
	} {
		url := pgtest.URL(t)
		ok(t, "", slices.Concat([]string{"migrate", "up", "--from", url}, set)...)
		want := schema(t, url)
		for tool, first := range map[string]string{
			"goose": `^00001_`, "tern": `^001_`, "atlas": `^20\d{12}_`, "flyway": `^V1__`,
		} {
			t.Run(name+"/"+tool, func(t *testing.T) {
				t.Parallel()
				folder, url := t.TempDir(), pgtest.URL(t)
				ok(t, "", slices.Concat([]string{"migrate", "print", "--format", tool, "--out", folder}, set)...)
				files := sqlFiles(t, folder)
				if !regexp.MustCompile(first).MatchString(filepath.Base(files[0])) {
					t.Errorf("the first file is %s", files[0])
				}
				for _, file := range files {
					apply(t, url, file, false)
				}
				if got := schema(t, url); got != want {
					t.Errorf("the files of %s make\n%s\nand migrate up\n%s", tool, got, want)
				}
				if tool != "tern" {
					return
				}
				slices.Reverse(files)
				for _, file := range files {
					apply(t, url, file, true)
				}
				if got := relations(t, connect(t, url)); got != "" {
					t.Errorf("the way down leaves %s", got)
				}
			})
		}
	}
}

func sqlFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.sql")) // sorted
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	return files
}

// apply runs one way of a file in one transaction, unless the tool would not.
func apply(t *testing.T, url, file string, down bool) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	up, below, _ := strings.Cut(strings.ReplaceAll(string(content), "-- +goose Down", ternDown), ternDown)
	script := up
	if down {
		script = below
	}
	conf, _ := os.ReadFile(file + ".conf") // Flyway's
	args := []string{"--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", url}
	outside := strings.Contains(string(conf), "executeInTransaction=false") || strings.HasPrefix(up, "---- tern: disable-tx ----\n") ||
		strings.HasPrefix(up, "-- atlas:txmode none\n\n") || strings.Contains(up, "-- +goose NO TRANSACTION")
	if !outside {
		args = append(args, "--single-transaction")
	}
	psql := exec.CommandContext(t.Context(), pgtest.ProgramPath(t, "psql"), args...)
	psql.Stdin = strings.NewReader(script)
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(file), err, out)
	}
}

// unlike is what two dumps of one schema differ in.
var unlike = regexp.MustCompile(`(?m)^(\\(un)?restrict .*|--.*|)\n`)

// schema is a dump of a database, without data and without goose's tables.
func schema(t *testing.T, url string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), pgtest.ProgramPath(t, "pg_dump"), "--schema-only", "--exclude-table", "*_goose*", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	return unlike.ReplaceAllString(string(out), "")
}

// TestMigratePrintFirst numbers the files behind those of the user, and overwrites none.
func TestMigratePrintFirst(t *testing.T) {
	t.Parallel()
	args := func(tool, first string, more ...string) []string {
		return append([]string{"migrate", "print", "--layout", "modkit", "--format", tool, "--first", first}, more...)
	}
	for tool, want := range map[string]string{"goose": "00099_modkit_outbox_events.sql", "tern": "100_claim_index.sql", "flyway": "V100__claim_index.sql.conf"} {
		folder := t.TempDir()
		if got := ok(t, "", args(tool, "99", "--out", folder)...); !strings.Contains(got, filepath.Join(folder, want)+"\n") {
			t.Errorf("%s wrote %s", tool, got)
		}
		// Once more, as after an update: what is there is not written again.
		if err := os.Remove(filepath.Join(folder, want)); err != nil {
			t.Fatal(err)
		}
		if got := ok(t, "", args(tool, "99", "--out", folder)...); got != filepath.Join(folder, want)+"\n" {
			t.Errorf("%s wrote %s", tool, got)
		}
		if err := os.WriteFile(filepath.Join(folder, want), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, "is another one", "", args(tool, "99", "--out", folder)...)
	}
	refused(t, "there is no folder nowhere; make it first", "", args("tern", "99", "--out", "nowhere")...)
	if got := ok(t, "", args("atlas", "20261231235959")...); !strings.Contains(got, "-- 20270101000000_claim_index.sql\n") {
		t.Errorf("Atlas goes on after the last second of the year with %s", got)
	}
	if got := ok(t, "", args("goose", "7", "--json")...); !strings.HasPrefix(got, `{"name":"00007_`) {
		t.Errorf("--json prints %.80s", got)
	}
	refused(t, "is no time", "", args("atlas", "99")...)
	refused(t, "choose goose, tern, atlas or flyway", "", args("liquibase", "1")...)
	refused(t, "versions begin at 1", "", args("tern", "0")...)
	refused(t, "versions begin at 1", "", args("tern", "-1")...)
	refused(t, "shape of a stream", "", args("tern", "1", "--slots", "4")...)
}

// TestMigratePrintIntoFolder prints into a folder with migrations of the user, before and after those of Outbox.
func TestMigratePrintIntoFolder(t *testing.T) {
	t.Parallel()
	for tool, name := range map[string]string{"goose": "%05d_%s.sql", "tern": "%03d_%s.sql", "flyway": "V%d__%s.sql"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := func(version int, of string) string { return filepath.Join(folder, fmt.Sprintf(name, version, of)) }
			write := func(path string) {
				t.Helper()
				if err := os.WriteFile(path, []byte("SELECT 1;\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := func(more ...string) []string {
				return slices.Concat([]string{"migrate", "print", "--layout", "modkit", "--format", tool, "--out", folder}, more)
			}
			write(file(12, "mine"))
			refused(t, filepath.Base(file(12, "mine"))+" has the version of", "", args("--first", "11")...)
			if files := sqlFiles(t, folder); len(files) != 1 {
				t.Fatalf("a refused print leaves %q", files)
			}
			ok(t, "", args()...)
			want := []string{file(12, "mine"), file(13, "modkit_outbox_events"), file(14, "claim_index"), file(15, "stray_index")}
			if files := sqlFiles(t, folder); !slices.Equal(files, want) {
				t.Fatalf("the folder has %q, want %q", files, want)
			}
			for _, again := range [][]string{{}, {"--first", "13"}, {"--first", "40"}} {
				if got := ok(t, "", args(again...)...); got != "nothing is missing in "+folder+"\n" {
					t.Errorf("print %q again says %s", again, got)
				}
			}

			// The next release has a third migration, and the user has one more of his own.
			for _, path := range []string{want[3], want[3] + ".conf"} {
				if err := os.Remove(path); err != nil && tool == "flyway" {
					t.Fatal(err)
				}
			}
			write(file(15, "mine_too"))
			refused(t, filepath.Base(file(15, "mine_too"))+" has the version of", "", args("--first", "13")...)
			if got := ok(t, "", args()...); !strings.HasSuffix(got, file(16, "stray_index")+"\n") {
				t.Errorf("the new migration is written to %s", got)
			}
			if err := os.Remove(want[2]); err != nil {
				t.Fatal(err)
			}
			refused(t, "which comes before it", "", args()...)
			write(want[2])
			refused(t, "is another one", "", args()...)
		})
	}
}
