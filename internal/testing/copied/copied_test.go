// Package copied takes packfinderz/ into a module of another name, as the team of that backend does.
package copied

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// top is the top of the repository.
	top    = "../../.."
	ours   = "github.com/packfinderz/outbox"
	theirs = "git.example.com/marketplace/backend"
)

// The folder, copied as it is into a module of another name, builds there, and all its tests pass: those of the GORM models, of the
// goose migrations and of the worker among them. It needs nothing but what our modules export. It then has an event type more, which all
// tests meet.
func TestPackFinderzUnderAnotherPath(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	copyModule(t, filepath.Join(top, "packfinderz"), folder)
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	// Until our modules are released they are where they are.
	edit := []string{"mod", "edit", "-module", theirs, "-replace", ours + "=" + root}
	for _, module := range []string{"consume/inbox/redisinbox", "destinations/gcppubsub", "destinations/redis", "layouts/layoutfile", "outboxgorm"} {
		edit = append(edit, "-replace", ours+"/"+module+"="+filepath.Join(root, module))
	}
	run(t, folder, edit...)
	run(t, folder, "build", "./...")
	run(t, folder, "vet", "./...")
	addEventType(t, folder)
	run(t, folder, "test", "-count=1", "./...")
}

// addEventType adds an event type in the copy alone, as docs/adopting.md says, and a test that emits it.
func addEventType(t *testing.T, folder string) {
	t.Helper()
	for _, line := range []struct{ file, after, added string }{
		{"pkg/enums/enums.go", "AdDailyRollupReady EventType = \"ad_daily_rollup_ready\"", "CouponIssued EventType = \"coupon_issued\""},
		{"pkg/enums/enums.go", "AdDailyRollupReady:    18,", "CouponIssued: 19,"},
		{
			"pkg/outbox/registry/registry.go", "enums.AdDailyRollupReady: to[payloads.AdDailyRollupReady](topics.Analytics, enums.AggregateAd),",
			"enums.CouponIssued: to[payloads.CouponIssued](topics.Billing, enums.AggregateStore),",
		},
		{
			"internal/pftest/payloads.go", `payloads.AdDailyRollupReady{AdID: ad, StoreID: store, Day: "2026-05-31", Impressions: 100, Clicks: 3, SpendCents: 120},`,
			"payloads.CouponIssued{StoreID: store},",
		},
	} {
		file := filepath.Join(folder, line.file)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(content), line.after+"\n", line.after+"\n"+line.added+"\n", 1)
		if changed == string(content) {
			t.Fatalf("%s has no line %s", line.file, line.after)
		}
		write(t, file, changed)
	}
	for _, name := range []string{"payload", "test"} {
		content, err := os.ReadFile(filepath.Join("testdata", "coupon_"+name+".go.txt"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, map[string]string{
			"payload": "pkg/outbox/payloads/coupons.go", "test": "pkg/outbox/coupon_test.go",
		}[name]), string(content))
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// copyModule copies a module's files, with its new name in the imports.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case name == "bin", name == filepath.Join("internal", "monorepo"):
			return filepath.SkipDir // what was built here, and what is about this repository
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".go") {
			content = bytes.ReplaceAll(content, []byte(`"`+ours+"/packfinderz/"), []byte(`"`+theirs+"/"))
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run is a command of go in the folder, which no workspace has.
func run(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}
