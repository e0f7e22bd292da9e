package layoutfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/layouts/layoutfile"
	"github.com/packfinderz/outbox/layouts/shipped"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, shipped := range shipped.All() {
		asYAML, err := layoutfile.Format(shipped.Layout)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.MarshalIndent(shipped.Layout, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		for name, doc := range map[string][]byte{"layout.yaml": asYAML, "layout.json": asJSON} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, doc, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := layoutfile.Load(path)
			if err != nil {
				t.Fatalf("%s\n%s", err, doc)
			}
			if !reflect.DeepEqual(got, shipped.Layout) {
				t.Errorf("%s: got %+v, want %+v", name, got, shipped.Layout)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	shipped, _ := shipped.Find("modkit")
	good, err := layoutfile.Format(shipped.Layout)
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, replacement string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("%q is not in the layout", old)
		}
		return strings.Replace(string(good), old, replacement, 1)
	}
	for doc, words := range map[string]string{
		"":                                    "not a layout",
		"- a":                                 "not a layout",
		"a: [":                                "not YAML or JSON",
		change("hold: lease", "hold: leash"):  "hold is \"leash\"",
		change("hold: lease", "holds: lease"): `unknown field "holds"`,
		change("  topic:", "  topics:"):       `unknown field "topics"`,
		change("  payload: payload", ""):      "columns.payload is missing",
		change("lockedBy: locked_by", "lockedBy: locked_until"):                  "columns.lockedUntil is column \"locked_until\"",
		change("attempts: attempts", "attempts: 12"):                             "a column is a name or an object",
		change("attempts: attempts", "attempts: {name: attempts, nul: true}"):    `unknown field "nul"`,
		change("attempts: attempts", "attempts: attempts\n  attempts: attempts"): "already defined",
	} {
		if _, err := layoutfile.Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q\n%.200s", err, words, doc)
		}
	}
	if _, err := layoutfile.Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a missing file was loaded")
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := layoutfile.Load(large); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
}

// FuzzParse looks for input that panics, or that passes and does not survive a round trip.
func FuzzParse(f *testing.F) {
	for _, shipped := range shipped.All() {
		doc, err := layoutfile.Format(shipped.Layout)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		layout, err := layoutfile.Parse(doc)
		if err != nil {
			return
		}
		again, err := layoutfile.Format(layout)
		if err != nil {
			t.Fatal(err)
		}
		got, err := layoutfile.Parse(again)
		if err != nil || !reflect.DeepEqual(got, layout) {
			t.Fatalf("got %+v (%v), want %+v", got, err, layout)
		}
	})
}
