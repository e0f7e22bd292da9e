package doctor

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Microsecond: "1ms", 1260 * time.Millisecond: "1.3s", 10 * time.Second: "10s", 70 * time.Second: "1m10s",
		10 * time.Minute: "10m", time.Hour + 30*time.Second: "1h0m30s", 20 * time.Hour: "20h", 90 * time.Minute: "1h30m", 50 * time.Hour: "2 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for word, want := range map[string]string{"a.b-c/d:1": "a.b-c/d:1", "two words": "'two words'", "": "''", "it's": `'it'\''s'`, "a;b": "'a;b'"} {
		if got := shell(word); got != want {
			t.Errorf("%q is %s, want %s", word, got, want)
		}
	}
}
