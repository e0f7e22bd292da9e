package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTour(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for range 2 { // it can be taken again on the same database
		var out bytes.Buffer
		if err := run(t.Context(), options{database: url, lease: pgstore.DefaultLease}, &out); err != nil {
			t.Fatalf("%v; it said:\n%s", err, &out)
		}
		for line, times := range map[string]int{
			": delivered\n":             3,
			"  thumbnail job for file ": 2,
			"  welcome mail to user ":   1,
			"of 5 failed, the next in ": 4,
			"failed for good after 5 attempts: handler thumbnail: no decoder for \"heic\" is installed": 1,
			"status failed, attempts 5 of 5, next_attempt_at NULL, delivered_at NULL\n":                 1,
			"status delivered, attempts 0 of 5, next_attempt_at NULL, delivered_at 2":                   1,
		} {
			if n := strings.Count(out.String(), line); n != times {
				t.Errorf("it said %q %d times, want %d:\n%s", line, n, times, &out)
			}
		}
	}
}

// TestAnswers has requests that are refused.
func TestAnswers(t *testing.T) {
	t.Parallel()
	p := start(t, build(t), pgtest.URL(t))
	if _, err := p.signUp(t.Context(), "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	for words, send := range map[string]func() (reply, error){
		"409 Conflict: there is an account": func() (reply, error) { return p.signUp(t.Context(), "ada@example.com") },
		"400 Bad Request: read the address": func() (reply, error) { return p.signUp(t.Context(), "nobody") },
		"400 Bad Request: read the request": func() (reply, error) { return p.do(t.Context(), "POST", "/users", "", "{") },
		"413 Request Entity Too Large":      func() (reply, error) { return p.upload(t.Context(), "a", "", strings.Repeat("a", maxUpload+1)) },
		"400 Bad Request: read the event's": func() (reply, error) { return p.do(t.Context(), "POST", "/events/7/retry", "", "") },
		"has not failed": func() (reply, error) {
			return p.do(t.Context(), "POST", "/events/01890000-0000-7000-8000-000000000000/retry", "", "")
		},
	} {
		if got, err := send(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v, %v, want %s", got, err, words)
		}
	}
}
