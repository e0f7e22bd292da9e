package main

import (
	"bytes"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestQuickstart(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for range 2 { // it can be run again on the same database
		var out bytes.Buffer
		if err := run(t.Context(), url, &out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(out.Bytes(), []byte("the event was handled: order ")) {
			t.Errorf("it said:\n%s", &out)
		}
	}
}
