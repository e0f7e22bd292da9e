package cli_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestDeadIsSeen has a receiver refuse an event for good: the log tells of it,
// and the numbers of the table count it.
func TestDeadIsSeen(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	t.Cleanup(receiver.Close)
	source, _ := modkit(t)
	ok(t, `{"namespace":"mini-chat","topic":"usage","payload":{}}`, slices.Concat([]string{"emit"}, source)...)
	drained := run(t, "", slices.Concat([]string{"drain", "--to", receiver.URL + "/#allow-private=true&terminal=422", "--namespace", "mini-chat"}, source)...)
	if drained.code != 0 {
		t.Fatalf("drain: exit code %d: %s", drained.code, drained.err)
	}
	for _, words := range []string{"level=WARN", `msg="event dead"`, "namespace=mini-chat", "topic=usage", "attempt=1", "reason=rejected", "answered 422"} {
		if !strings.Contains(drained.err, words) {
			t.Errorf("the log lacks %q:\n%s", words, drained.err)
		}
	}
	if got := ok(t, "", slices.Concat([]string{"stats"}, source)...); !strings.Contains(got, "\ndead                          1\n") {
		t.Errorf("stats:\n%s", got)
	}
	if got := ok(t, "", slices.Concat([]string{"stats", "--json"}, source)...); !strings.Contains(got, `"dead":1`) {
		t.Errorf("stats --json: %s", got)
	}
}
