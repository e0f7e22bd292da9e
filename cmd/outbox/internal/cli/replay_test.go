package cli_test

import (
	"slices"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestReplay(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(70)
	first := delivered(t, s.run("", "drain"+quiet))
	var want []delivery
	for _, event := range first {
		if event.Key == "k3" {
			want = append(want, event)
		}
	}
	if got := s.run("", "replay --key k3 --topic orders --type placed --dry-run"); got != "would replay 10 events\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := s.run("", "drain"+quiet); got != "" {
		t.Errorf("a dry run replayed %s", got)
	}
	s.hears(func() {
		if got := s.run("", "replay --key k3"); got != "replaying 10 events through the relay of subscription default\n" {
			t.Errorf("replay prints %q", got)
		}
	})
	if got := delivered(t, s.run("", "drain"+quiet)); !slices.Equal(got, want) {
		t.Errorf("replayed %v, want %v", got, want)
	}
	if got := s.run("", "replay --json --rate 1000/s --id "+want[0].ID); got != `{"dryRun":false,"events":1}`+"\n" {
		t.Errorf("replay --json prints %q", got)
	}
	hour := time.Hour
	for span, events := range map[string]string{
		"--since " + time.Now().Add(-hour).Format(time.RFC3339) + " --until " + time.Now().Add(hour).Format(time.RFC3339): "69 events", // one waits to be replayed

		"--since " + time.Now().Add(hour).Format(time.RFC3339):  "0 events",
		"--until " + time.Now().Add(-hour).Format(time.RFC3339): "0 events",
	} {
		if got := s.run("", "replay --dry-run "+span); got != "would replay "+events+"\n" {
			t.Errorf("replay %s: %q", span, got)
		}
	}
}

// TestReplayWhereTheRelayPublishes names the destination once, for the relay and for replays of a queue table. A stream's
// replay leaves it to the relay.
func TestReplayWhereTheRelayPublishes(t *testing.T) {
	s := newStandard(t)
	t.Setenv("OUTBOX_TO", "stdout:")
	s.emit(1)
	s.run("", "drain"+quiet)
	s.run("", "replay --topic orders")

	source, _ := modkit(t)
	ok(t, `{"namespace":"a","topic":"orders","payload":{}}`, slices.Concat([]string{"emit"}, source)...)
	first := ok(t, "", slices.Concat([]string{"drain"}, source)...)
	if got := ok(t, "", slices.Concat([]string{"replay", "--topic", "orders"}, source)...); len(delivered(t, got)) != 1 {
		t.Errorf("replayed %q, want %q", got, first)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.refuses("say what to replay", "replay")
	s.refuses("not a UUID", "replay --id 7")
	s.refuses("--since is", "replay --since yesterday")
	s.refuses("--until is", "replay --until tomorrow")
	s.refuses("--until is not after", "replay --since 2030-01-31T12:00:00Z --until 2030-01-31T12:00:00Z")
	for _, rate := range []string{"0", "-1/s", "fast", "1.5/s", "9999999999999999999"} {
		s.refuses("it looks like 100/s", "replay --key k --rate "+rate)
	}
	s.refuses("there is no such subscription", "replay --key k --subscription nobody")
	s.refuses("there is no stream", "replay --key k --schema elsewhere")
	pgtest.Exec(t, s.pool, `UPDATE outbox_shards SET q1 = 1000000`)
	s.refuses("run outbox repair", "replay --key k")
	refused(t, "cannot reach the database", "", "replay", "--key", "k", "--from", "postgres://u:hunter2@127.0.0.1:1/x")
	if got := s.count("outbox_parked"); got != 0 {
		t.Errorf("something was written: %d rows", got)
	}
}
