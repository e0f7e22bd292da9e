package natsjs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publisher := open(t, broker.URL())
	bad := []struct{ name, value, words string }{
		{"a:b", "x", `"a:b"`}, {"", "x", "without a name"}, {"a b", "x", `"a b"`}, {"é", "x", `"é"`},
		{"line", "a\nb", `"line"`}, {"return", "a\rb", `"return"`}, {"space", " x", `"space"`}, {"Nats-Rollup", "all", "the server's own"},
		{"nats-msg-id", "1", "the server's own"},
	}
	messages := publishertest.Messages(len(bad))
	for i, b := range bad {
		messages[i].Headers = map[string]string{b.name: b.value}
	}
	for i, err := range publishertest.Publish(t, publisher, messages) {
		publishertest.Fails(t, err, outbox.ClassTerminal, bad[i].words)
	}
	odd := publishertest.Messages(1)
	odd[0].Headers = map[string]string{"UPPER": "1", "upper": "2", "empty": "", "tab": "a\tb", "utf": "né", "x-a_b!#$%&'*+.^`|~": "{}"}
	publishertest.Deliver(t, publisher, odd)
	received := broker.Received(t)
	if len(received) != 1 {
		t.Fatalf("%d messages arrived", len(received))
	}
	for name, value := range odd[0].Headers {
		if got, ok := received[0].Attributes[name]; !ok || got != value {
			t.Errorf("header %q is %q, want %q", name, got, value)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	topics := []string{"a..b", ".a", "a.", "a b", "a\nb", "*", "a.>", "a.*.b", "$JS.API.STREAM.DELETE.ORDERS", "_INBOX.x", strings.Repeat("x", 2000)}
	messages := publishertest.Messages(len(topics))
	for i := range messages {
		messages[i].Topic = topics[i]
	}
	for i, err := range publishertest.Publish(t, open(t, broker.URL()), messages) {
		if outbox.Classify(err) != outbox.ClassTerminal || err == nil {
			t.Errorf("topic %q: %v", topics[i], err)
		}
	}
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	messages := publishertest.Messages(1)
	publishertest.Deliver(t, open(t, broker.URL()+"?format=cloudevents&source=/shop"), messages)
	got := broker.Received(t)[0]
	if got.ID != messages[0].ID || string(got.Payload) != string(messages[0].Payload) {
		t.Errorf("got %+v", got)
	}
	for name, value := range map[string]string{
		"ce-specversion": "1.0", "ce-source": "/shop", "ce-type": "order_created", "content-type": "application/json", "trace": "t1",
		"ce-subject": "order/0",
	} {
		if got.Attributes[name] != value {
			t.Errorf("%s is %q, want %q", name, got.Attributes[name], value)
		}
	}
	if text, err := json.Marshal(got.Attributes); err != nil || strings.Contains(string(text), "event_id") {
		t.Errorf("attributes %s (%v)", text, err)
	}
}
