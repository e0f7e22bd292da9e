package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckAll(t *testing.T) {
	t.Parallel()
	const diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-right\n+wrong\n"
	file := filepath.Join(t.TempDir(), "area-what.patch")
	if err := os.WriteFile(file, []byte(diff), 0o600); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		"right\n": "",
		"wrong\n": "area-what: the fault is in the code already",
		"other\n": "area-what does not apply",
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "x"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkAll(t.Context(), tree{root: root}, []patch{{name: "area-what", path: file}})
		if (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("code %q: %v, want %q", code, err, want)
		}
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()
	done := counter{of: 12}
	if got := done.next() + "," + done.next(); got != " 1/12, 2/12" {
		t.Error(got)
	}
}
