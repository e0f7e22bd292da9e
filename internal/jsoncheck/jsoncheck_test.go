package jsoncheck_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/jsoncheck"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestCheck(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a": [1, -2.5e3, "x", null, true]}`: "",
		`"\u0041\\u0000\ud83d\ude00\/"`:       "",
		`1e400`:                               "",
		`1e401`:                               "number",
		`-1E-401`:                             "number",
		`1e99999999999999999999`:              "number",
		strings.Repeat("1", 1000):             "",
		strings.Repeat("1", 1001):             "number",
		`"\u0000"`:                            "U+0000",
		`"\ud800x"`:                           "surrogate",
		`"\ud800\n"`:                          "surrogate",
		`"\udfff"`:                            "surrogate",
		"\"\xff\"":                            "UTF-8",
		``:                                    "not valid JSON",
		`{`:                                   "not valid JSON",
		`"["` + strings.Repeat("[", 999) + strings.Repeat("]", 999): "not valid JSON",
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000):       "",
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001):       "nested",
		strings.Repeat("[", 20000):                                  "nested",
	} {
		_, err := jsoncheck.Check([]byte(doc))
		switch {
		case want == "" && err != nil:
			t.Errorf("%.40q: got %v, want it taken", doc, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: got %v, want %q", doc, err, want)
		}
	}
	if _, err := jsoncheck.Check([]byte("no")); !errors.Is(err, jsoncheck.ErrSyntax) {
		t.Error("a document that is no JSON does not match ErrSyntax")
	}
}

func TestExpanded(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]int{
		`{"a": 1}`:          8,
		`[1e100, -1e-50]`:   15 + 150,
		`"1e100 \" 1e100"`:  16,
		`{"1e9": "1e9\\"}`:  16,
		`[1.5E+3,-2,0.0e0]`: 17 + 3,
	} {
		if got, err := jsoncheck.Check([]byte(doc)); got != want || err != nil {
			t.Errorf("%s: got %d (%v), want %d", doc, got, err, want)
		}
	}
}

// FuzzCheck holds Check against encoding/json and PostgreSQL itself: what Check takes,
// both must take, or an event would abort its caller's transaction; and what Check calls
// no JSON must be none.
func FuzzCheck(f *testing.F) {
	conn, err := pgx.Connect(context.Background(), pgtest.URL(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, seed := range []string{
		`{"a": [1, -2.5e3, "x", null, true]}`, `"\u0000"`, `"\\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `1e131071`, `1e400`,
		`0.0e0`, `[[[[[]]]]]`, "\"\xed\xa0\x80\"", `"\b\f\n\r\t\/"`, `-0`, `{"":{"":""}}`, "\ufeff{}", "\u2028", `"\uD83D\uDE00"`,
	} {
		f.Add([]byte(seed))
	}
	for _, seed := range []string{
		"01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "nul", "tru", "\"\\x\"", "\"\\u12g4\"", "\"\\u+123\"", "\"\t\"", "[1,]", "{,}", "{\"a\"}",
		"{\"a\":1,}", "{1:2}", "[}", "{]", "[1 2]", "\"a", "[[]", "]", "\v1", "1 2", "\"\\", "\"\\ud800\\u", "[true,false,null]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 1<<16 {
			return
		}
		expanded, err := jsoncheck.Check(doc)
		if valid := json.Valid(doc); valid && errors.Is(err, jsoncheck.ErrSyntax) || !valid && err == nil {
			t.Fatalf("Check says %v of %q, encoding/json %v", err, doc, valid)
		}
		if err != nil {
			return
		}
		var size int
		err = conn.QueryRow(context.Background(), `SELECT octet_length($1::text::jsonb::text)`, string(doc)).Scan(&size)
		if err != nil {
			t.Fatalf("Check takes %q, PostgreSQL says %v", doc, err)
		}
		// jsonb adds a space after each comma and colon and nothing else but digits.
		if limit := 2*expanded + 16; size > limit {
			t.Fatalf("%q: jsonb gives back %d bytes, Check allows %d", doc, size, limit)
		}
	})
}
