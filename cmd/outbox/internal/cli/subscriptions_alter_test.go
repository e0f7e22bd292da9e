package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
)

func TestSubscriptionsAlter(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "subscriptions create mails --topic mails --type sent --namespace n --tenant 01890000-0000-7000-8000-000000000000 --to discard: --on-dead block")
	if got := s.run("", "subscriptions alter mails --topic mails --topic letters"); got != "altered subscription mails; it takes namespace n, "+
		"topic mails or letters, type sent, tenant 01890000-0000-7000-8000-000000000000, and goes to discard:\n" {
		t.Errorf("alter prints %q", got)
	}
	if got := s.run("", "subscriptions list"); !strings.Contains(got, "discard:") || !strings.Contains(got, "blocks its key") {
		t.Errorf("what was not named did not stay:\n%s", got)
	}
	if got := s.run("", "subscriptions alter mails --clear topic --clear type --clear tenant --namespace m --json"); !strings.Contains(got,
		`"filter":{"namespace":"m"},"destination":"discard:","onDead":"block"`) {
		t.Errorf("alter --json prints %q", got)
	}
	s.run("", "subscriptions alter mails --clear namespace --clear to --on-dead skip")
	if got := s.run("", "subscriptions list"); !strings.Contains(got, "\nmails    everything  -            is skipped ") {
		t.Errorf("the list is\n%s", got)
	}
	s.refuses("say what to alter", "subscriptions alter mails")
	s.refuses("takes NAME", "subscriptions alter")
	s.refuses("--clear topic and --topic: choose one", "subscriptions alter mails --clear topic --topic a")
	s.refuses("--clear name: choose from", "subscriptions alter mails --clear name")
	s.refuses("there is no such subscription", "subscriptions alter nobody --topic a")
	s.refuses("has no scheme", "subscriptions alter mails --to nowhere")
	s.refuses(`choose "skip" or "block"`, "subscriptions alter mails --on-dead wait")
	s.refuses("not a UUID", "subscriptions alter mails --tenant 7")
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_relays (subscription, worker, host, pid, alive_until)
		VALUES ('mails', gen_random_uuid(), 'there', 1, now() + interval '1 minute')`)
	s.refuses("it is of an earlier program", "subscriptions alter mails --topic a")
	s.run("", "subscriptions alter mails --topic a --force")
}

// TestSubscriptionsHalfMade has one whose making broke off.
func TestSubscriptionsHalfMade(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "subscriptions create half --from-now")
	pgtest.Exec(t, s.pool, `UPDATE outbox_subscriptions SET ready = false WHERE name = 'half'`)
	if got := s.run("", "subscriptions list"); !strings.Contains(got, "unfinished; drop it") {
		t.Errorf("the list is\n%s", got)
	}
	if got := s.run("", "subscriptions list --json"); !strings.Contains(got, `"halfMade":true`) {
		t.Errorf("the list is\n%s", got)
	}
	for _, command := range []string{"subscriptions create half", "relay --subscription half --to discard:", "stats --subscription half", "list --subscription half"} {
		s.refuses("drop it with outbox subscriptions drop, and make it again", command)
	}
	s.run("", "stats")
	s.run("", "subscriptions drop half")
	s.run("", "subscriptions create half")
}

// background runs a command until the test ends, or it does.
func (s *standard) background(command string) (log *logtest.Log, ended <-chan int) {
	s.Helper()
	log = &logtest.Log{}
	done := make(chan int, 1)
	ctx, stop := context.WithCancel(s.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		done <- cli.Run(ctx, s.args(command, nil), cli.Streams{In: strings.NewReader(""), Out: log, Err: log})
	}()
	s.Cleanup(func() { stop(); <-stopped })
	return log, done
}

// TestRelayOfAlteredDestination alters where the events go while a relay runs.
func TestRelayOfAlteredDestination(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first"), filepath.Join(folder, "second")
	lines := func(file string) int {
		content, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(content), "\n")
	}
	s.run("", "subscriptions alter default --to file:"+first)
	log, ended := s.background("relay --poll 50ms --listen 127.0.0.1:0")
	fixed, _ := s.background("relay --poll 50ms --to discard:")
	s.emit(20)
	await.Until(t, "the events to arrive", func() bool { return log.Count("relaying") == 1 && fixed.Count("relaying") == 1 })
	s.run("", "subscriptions alter default --to file:"+second)
	log.Await(t, "going on with the new one")
	await.Until(t, "the relay to go on", func() bool { return log.Count("relaying") == 2 })
	fixed.Await(t, "goes on to the one of --to")
	await.Until(t, "both to have shards again", func() bool {
		return s.count(`(SELECT FROM outbox_shards WHERE owner IS NOT NULL GROUP BY owner HAVING count(*) = 4) AS sharing`) == 2
	})
	before := lines(first)
	s.emit(70)
	await.Until(t, "events to arrive at the new destination", func() bool { return lines(second) > 0 })
	if after := lines(first); after != before {
		t.Errorf("the old destination got %d events more", after-before)
	}
	// One that is wrong is said as at the start.
	s.run("", "subscriptions alter default --to file:"+filepath.Join(folder, "missing", "file"))
	if code := <-ended; code != 2 {
		t.Errorf("exit code %d, want 2: %s", code, log.Text())
	}
}

// TestRelayOfADeadDestination alters and drops the subscription of a relay that waits for its destination.
func TestRelayOfADeadDestination(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	const dead = "http://127.0.0.1:1/#allow-private=true"
	file := filepath.Join(t.TempDir(), "events")
	s.run("", "subscriptions alter default --to "+dead)
	log, ended := s.background("relay --poll 50ms --lease 3s")
	s.emit(20)
	await.Until(t, "the relay to wait", func() bool { return s.count("outbox_relays WHERE waits_until > now()") == 1 })
	if got := s.run("", "stats"); !strings.Contains(got, "waits for its destination") {
		t.Errorf("stats prints\n%s", got)
	}
	s.run("", "subscriptions alter default --to file:"+file)
	await.Until(t, "the events to arrive at the new destination", func() bool {
		content, err := os.ReadFile(file)
		return err == nil && strings.Count(string(content), "\n") == 20
	})
	s.run("", "subscriptions alter default --to "+dead)
	s.emit(1)
	await.Until(t, "the relay to wait", func() bool { return s.count("outbox_relays WHERE waits_until > now()") == 1 })
	s.run("", "subscriptions drop default --force")
	if code := <-ended; code != 2 || log.Count(`subscription "default" was dropped`) == 0 {
		t.Errorf("exit code %d: %s", code, log.Text())
	}
}

// TestRelayOfDroppedSubscription ends the relay with what was wrong at the start would end it, too.
func TestRelayOfDroppedSubscription(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	log, ended := s.background("relay --poll 50ms --to discard:")
	await.Until(t, "the relay to be listed", func() bool { return s.count("outbox_relays") == 1 })
	s.refuses("served by a relay", "subscriptions drop default")
	s.run("", "subscriptions drop default --force")
	if code := <-ended; code != 2 || log.Count(`subscription "default" was dropped`) == 0 {
		t.Errorf("exit code %d: %s", code, log.Text())
	}
}

// TestNamesOfEarlierPrograms has subscriptions whose names are refused today. Every command works.
func TestNamesOfEarlierPrograms(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	for _, name := range []string{"a/b", "..", `it's "so"`, "ü ?#%2f", "\x1b[2J"} {
		s.refuses("the subscription's name", "subscriptions create", "--", name)
		pgtest.Exec(t, s.pool, `INSERT INTO outbox_subscriptions (name) VALUES ($1)`, name)
		pgtest.Exec(t, s.pool, `INSERT INTO outbox_shards (subscription, shard, s1, q1, hi, pos)
			SELECT $1, shard, s1, q1, hi, pos FROM outbox_shards WHERE subscription = 'default'`, name)
		s.run("", "stats", "--subscription", name)
		s.run("", "list", "--subscription", name)
		s.run("", "drain --to discard:", "--subscription", name)
		s.run("", "subscriptions alter --topic x", name)
	}
	for _, command := range []string{"stats", "subscriptions list"} {
		if got := s.run("", command); strings.Contains(got, "\x1b") {
			t.Errorf("%s prints what moves the cursor: %q", command, got)
		}
	}
	for _, name := range []string{"a/b", "..", `it's "so"`, "ü ?#%2f", "\x1b[2J"} {
		s.run("", "subscriptions drop", name)
	}
}
