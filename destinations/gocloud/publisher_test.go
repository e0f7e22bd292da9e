package gocloud_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/destinations/gocloud"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{Attributes: true, Binary: true}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		url := place()
		m := subscribe(t, url)
		m.publisher = open(t, url)
		return m
	})
}

// A key's messages go one after the other.
func TestOrderOfKeys(t *testing.T) {
	t.Parallel()
	url := place()
	m := subscribe(t, url)
	messages := publishertest.Messages(60)
	for i := range messages {
		messages[i].Key = fmt.Sprint("key", i%3)
		messages[i].Payload = fmt.Appendf(nil, "%03d", i)
	}
	publishertest.Fates(t, publishertest.Publish(t, open(t, url), messages), make([]string, len(messages))...)
	last := make(map[string]string)
	for _, r := range m.Received(t) {
		key := fmt.Sprint("key", (int(r.Payload[1]-'0')*10+int(r.Payload[2]-'0'))%3)
		if now := string(r.Payload); now <= last[key] {
			t.Fatalf("%s: %s after %s", key, now, last[key])
		} else {
			last[key] = now
		}
	}
}

func TestTopicInURL(t *testing.T) {
	t.Parallel()
	shop := place()
	orders, bills := subscribe(t, shop+"/orders"), subscribe(t, shop+"/bills")
	messages := publishertest.Messages(4)
	messages[1].Topic = "bills"
	messages[2].Topic = ""
	messages[3].Topic = "../elsewhere"
	errs := publishertest.Publish(t, open(t, shop+"/{topic}"), messages)
	publishertest.Fates(t, errs, "", "", "topic missing", "rejected")
	wantText(t, errs[2], "--topic-default")
	wantText(t, errs[3], "../elsewhere")
	for i, m := range []*memory{orders, bills} {
		if got := m.Received(t); len(got) != 1 || got[0].ID != messages[i].ID {
			t.Errorf("topic %d got %v", i, got)
		}
	}
}

// More topics than stay open.
func TestManyTopics(t *testing.T) {
	t.Parallel()
	many := place()
	last := subscribe(t, many+"/topic249")
	publisher := open(t, many+"/{topic}")
	messages := publishertest.Messages(250)
	for i := range messages {
		messages[i].Topic = fmt.Sprint("topic", i)
	}
	for range 2 {
		publishertest.Fates(t, publishertest.Publish(t, publisher, messages), make([]string, len(messages))...)
	}
	if got := last.Received(t); len(got) != 2 {
		t.Errorf("%d messages have arrived in the last topic, want 2", len(got))
	}
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	url := place()
	m := subscribe(t, url)
	messages := publishertest.Messages(1)
	messages[0].CreatedAt = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	messages[0].Headers = map[string]string{"x-own": "1"}
	publishertest.Fates(t, publishertest.Publish(t, open(t, url+"?format=cloudevents&source=/shop"), messages), "")
	want := map[string]string{
		"ce-specversion": "1.0", "ce-id": messages[0].ID.String(), "ce-source": "/shop", "ce-type": "order_created",
		"ce-time": "2026-03-04T05:06:07Z", "ce-subject": "order/0", "ce-partitionkey": "order/0",
		"ce-tenantid": messages[0].TenantID.String(), "ce-dedupekey": "k0", "content-type": "application/json", "x-own": "1",
	}
	if got := m.Received(t)[0].Attributes; !maps.Equal(got, want) {
		t.Errorf("the attributes are\n%q, want\n%q", got, want)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	publisher := open(t, place())
	for range 2 {
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	}
	publishertest.Fates(t, publishertest.Publish(t, publisher, publishertest.Messages(1)), "away")
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"mem://orders": "mem://orders",
		"awssns:///arn:aws:sns:eu-west-1:123456789012:orders?region=eu-west-1": "awssns:///arn:aws:sns:eu-west-1:123456789012:orders?region=eu-west-1",
		"awssqs://sqs.example/1/{topic}.fifo?format=cloudevents&region=r":      "awssqs://sqs.example/1/{topic}.fifo?region=r",
		"azuresb://{topic}": "azuresb://{topic}",
	} {
		if got, err := gocloud.ParseURL(raw); err != nil || got.URL != want {
			t.Errorf("%s: %+v, %v; want %s", raw, got, err, want)
		}
	}
	for raw, says := range map[string]string{
		"orders":                   "no driver",
		"kafka://orders":           `"kafka://"`,
		"mem://":                   "names no topic",
		"mem://orders?format=xml":  "format",
		"mem://orders?source=/s":   "cloudevents",
		"mem://orders?%zz":         "question mark",
		"mem://orders%zz":          "not a URL",
		"awssqs://u:s3cret@host/q": "no place",
	} {
		_, err := gocloud.ParseURL(raw)
		wantText(t, err, says)
		wantNoSecret(t, err)
	}
	for raw, says := range map[string]string{
		"mem://orders?create=true":       "create",
		"awssqs://host/q?no_such_option": "no_such_option",
	} {
		_, err := gocloud.New(gocloud.Config{URL: raw})
		wantText(t, err, says)
	}
}

func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}
