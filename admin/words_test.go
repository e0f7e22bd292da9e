package admin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/ops"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		number(0): "0", number(-1234): "-1,234", number(1234567): "1,234,567", number(100): "100",
		count(ops.Count{N: 10000, AtLeast: true}): "10,000+", count(ops.Count{N: 5, Estimate: true}): "~5",
		seconds(0): "0 s", seconds(1.25): "1.2 s", seconds(59): "59 s", seconds(61): "1 min 1 s", seconds(7200): "2 h", seconds(90000): "1 d 1 h",
		ago(time.Second): "just now", ago(3 * time.Minute): "3 min ago", ago(-2 * time.Hour): "in 2 h",
		cut(3, "äöüß"): "äöü…", cut(4, "abcd"): "abcd", plural(1, "event"): "1 event", plural(2000, "event"): "2,000 events",
		localPath("/a?b=c"): "/a?b=c", localPath("//a"): "/",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(ago time.Duration, n int64) sample { return sample{At: now.Add(-ago), Backlog: n} }
	value := func(s sample) float64 { return float64(s.Backlog) }
	if c := newChart(nil, now, value); !c.Empty || c.Line != "" {
		t.Errorf("nothing is drawn as %+v", c)
	}
	if c := newChart([]sample{at(time.Second, -1)}, now, value); !c.Empty {
		t.Errorf("what is unknown is drawn as %+v", c)
	}
	c := newChart([]sample{at(4*time.Minute, 0), at(4*time.Minute-2*time.Second, 180), at(2*time.Second, 20), at(0, 10)}, now, value)
	if c.Top != 200 || c.Span != 4*time.Minute {
		t.Errorf("the chart is %+v", c)
	}
	if strings.Count(c.Line, "M") != 2 || strings.Count(c.Area, "Z") != 2 {
		t.Errorf("a pause is drawn over: %s", c.Line)
	}
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 3: 5, 7: 10, 10: 10, 499: 500, 501: 1000} {
		if got := niceTop(v); got != want {
			t.Errorf("the top of %g is %g, want %g", v, got, want)
		}
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	p := newPayload([]byte(`{"a":[1,-2.5e3,"x\"y",true,null]}`))
	var classes []string
	for _, part := range p.Parts {
		classes = append(classes, part.Class)
	}
	for _, class := range []string{"key", "string", "number", "word", ""} {
		if !slices.Contains(classes, class) {
			t.Errorf("nothing is a %s in %+v", class, p.Parts)
		}
	}
	for kind, content := range map[string]string{"JSON": `"x"`, "text": "hällo", "binary": "\xff\x00"} {
		if p := newPayload([]byte(content)); p.Kind != kind || p.Cut {
			t.Errorf("%q is %+v", content, p)
		}
	}
	// What would make a page too large is cut, or not coloured.
	for _, content := range []string{
		strings.Repeat("é", maxShown), `"` + strings.Repeat("x", 5*maxShown) + `"`, "\xff" + strings.Repeat("x", maxShown),
	} {
		if p := newPayload([]byte(content)); !p.Cut || p.Size != int64(len(content)) {
			t.Errorf("a payload of %d bytes is not cut", len(content))
		}
	}
	if p := newPayload([]byte("[" + strings.Repeat("1,", 60_000) + "1]")); len(p.Parts) > maxParts+1 {
		t.Errorf("%d pieces", len(p.Parts))
	}
	if p := newPayload([]byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))); len(p.Parts) == 0 || len(p.Parts[0].Text) > 4*maxShown {
		t.Error("deep nesting makes a large page")
	}
}

// FuzzColour: nothing of a payload is lost or changed by colouring it.
func FuzzColour(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"b\"",true]}`, `"`, `"\`, `-`, "{\n", "[tru", "\u2028<script>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		var whole strings.Builder
		for _, part := range colour([]byte(content)) {
			whole.WriteString(part.Text)
		}
		if whole.String() != content {
			t.Errorf("%q becomes %q", content, whole.String())
		}
		if p := newPayload([]byte(content)); json.Valid([]byte(content)) != (p.Kind == "JSON") {
			t.Errorf("%q is taken for %s", content, p.Kind)
		}
	})
}
