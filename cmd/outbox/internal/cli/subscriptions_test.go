package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(20)
	s.run(`{"type":"sent","topic":"mails","payload":{}}`, "emit")
	file := filepath.Join(t.TempDir(), "mails.jsonl")
	if got := s.run("", "subscriptions create mails --topic mails --topic letters --type sent --on-dead block", "--to", "file:"+file); got !=
		"made subscription mails; it begins at the oldest event, takes topic mails or letters, type sent, and goes to file:"+file+"\n" {
		t.Errorf("create prints %q", got)
	}
	if got := s.run("", "subscriptions create late --from-now --namespace n --tenant 01890000-0000-7000-8000-000000000000 --json"); !strings.Contains(got,
		`"filter":{"namespace":"n","tenantId":"01890000-0000-7000-8000-000000000000"},"onDead":"skip"`) {
		t.Errorf("create --json prints %q", got)
	}
	list := s.run("", "subscriptions list")
	for _, words := range []string{
		"NAME ", "\ndefault  everything ", "\nlate     namespace n, tenant 01890000-0000-7000-8000-000000000000 ",
		"\nmails    topic mails or letters, type sent ", "blocks its key", "file:" + file,
	} {
		if !strings.Contains(list, words) {
			t.Errorf("the list lacks %q:\n%s", words, list)
		}
	}
	pgtest.Exec(t, s.pool, `UPDATE outbox_subscriptions SET destination = 'kafka://user:hunter2@host' WHERE name = 'late'`)
	for _, format := range []string{"", " --json"} {
		if got := s.run("", "subscriptions list"+format); strings.Contains(got, "hunter2") || !strings.Contains(got, "kafka://user:xxxxx@host") {
			t.Errorf("the list shows a password: %s", got)
		}
	}
	// The relay publishes what the subscription takes, where it says.
	s.run("", "drain --subscription mails")
	if content, err := os.ReadFile(file); err != nil || len(delivered(t, string(content))) != 1 {
		t.Errorf("the file has %q (%v)", content, err)
	}
	if got := s.run("", "drain --subscription late --to stdout: --log-level error"); got != "" {
		t.Errorf("a subscription from now on took %s", got)
	}
	s.run("", "subscriptions drop late")
	s.run("", "subscriptions drop mails --json")
	s.refuses("has 21 events undelivered", "subscriptions drop default")
	s.run("", "subscriptions drop default --force")
	if got := s.count("outbox_subscriptions"); got != 0 {
		t.Errorf("%d subscriptions are left", got)
	}
}

func TestSubscriptionsRefuse(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	refused(t, "create, alter, list or drop", "", "subscriptions")
	s.refuses("takes NAME", "subscriptions create")
	s.refuses("takes NAME", "subscriptions drop a b")
	s.refuses("choose one", "subscriptions create a --from-now --from-oldest")
	s.refuses("not a UUID", "subscriptions create a --tenant 7")
	s.refuses("has no scheme", "subscriptions create a --to nowhere")
	s.refuses(`choose "skip" or "block"`, "subscriptions create a --on-dead wait")
	s.refuses("more than 100 characters", "subscriptions create", strings.Repeat("x", 101))
	s.refuses("exists already", "subscriptions create default")
	s.refuses("there is no such subscription", "subscriptions drop nobody")
	s.refuses("there is no such subscription", "subscriptions drop nobody --force")
	s.refuses("unknown flag", "subscriptions list --layout modkit")
	s.refuses("there is no stream; make it with outbox migrate up", "subscriptions list --schema elsewhere")
	s.refuses("there is no stream", "subscriptions create a --schema elsewhere")
	s.refuses("there is no stream; make it with outbox migrate up", "subscriptions drop a --schema elsewhere")
	if got := s.count("outbox_subscriptions"); got != 1 {
		t.Errorf("there are %d subscriptions", got)
	}
	// One that a relay serves.
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_relays (subscription, worker, host, pid, alive_until)
		VALUES ('default', gen_random_uuid(), 'there', 1, now() + interval '1 minute')`)
	s.refuses("served by a relay, on there", "subscriptions drop default")
	pgtest.Exec(t, s.pool, `UPDATE outbox_shards SET q1 = 1000000`)
	s.refuses("run outbox repair", "subscriptions create a")
	for _, command := range []string{"list", "create a", "drop a"} {
		refused(t, "cannot reach the database", "",
			append(strings.Fields("subscriptions "+command), "--from", "postgres://u:hunter2@127.0.0.1:1/x")...)
	}
}

// TestCommasInNames takes each value of a list flag as it is: a topic or a type may have commas and quotes.
func TestCommasInNames(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run(`{"type":"a,b","topic":"eu,orders","payload":{}}
{"type":"a","topic":"eu","payload":{}}
{"type":"said","topic":"say \"hi\"","payload":{}}`, "emit")
	if got := s.run("", "subscriptions create x --to discard: --type a,b", "--topic", "eu,orders", "--topic", `say "hi"`); !strings.HasSuffix(got,
		`takes topic "eu,orders" or "say \"hi\"", type "a,b", and goes to discard:`+"\n") {
		t.Errorf("create prints %q", got)
	}
	for _, filter := range [][]string{{"--topic", "eu,orders"}, {"--topic", `say "hi"`}, {"--clear", "topic", "--type", "a,b"}} {
		s.run("", "subscriptions create y --from-oldest")
		s.run("", "subscriptions alter y", filter...)
		if got := delivered(t, s.run("", "drain --subscription y"+quiet)); len(got) != 1 {
			t.Errorf("%v takes %+v", filter, got)
		}
		s.run("", "subscriptions drop y")
	}
	s.refuses("it is empty", "subscriptions alter x --topic=")
	s.refuses(`"default,x"`, "repair --subscription default,x")
	source, _ := modkit(t)
	ok(t, `{"namespace":"shop","topic":"eu,orders","payload":{}}`, append([]string{"emit"}, source...)...)
	if got := delivered(t, ok(t, "", append([]string{"drain", "--topic", "eu,orders", "--to", "stdout:", "--log-level", "error"}, source...)...)); len(got) != 1 {
		t.Errorf("a table's topic with a comma: %+v", got)
	}
}
