package wire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

func message() *outbox.Message {
	return &outbox.Message{
		Event: outbox.Event{
			ID: uuid.MustParse("01890000-0000-7000-8000-000000000000"), Namespace: "shop", Topic: "orders", Type: "order_created",
			AggregateType: "order", AggregateID: "42", TenantID: uuid.MustParse("11111111-1111-4111-8111-111111111111"),
			DedupeKey: "d", Key: "order/42", ContentType: "application/json",
			Headers: map[string]string{"traceparent": "00-1-2-01", "b": "2", "event_id": "forged", "ce-id": "forged"},
		},
		CreatedAt: time.Date(2026, 1, 2, 4, 4, 5, 6000, time.FixedZone("", 3600)),
	}
}

func lines(list []wire.Attribute) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteString(a.Name + "=" + a.Value + "\n")
	}
	return b.String()
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		format wire.Format
		want   string
	}{
		"plain": {wire.Format{}, `event_id=01890000-0000-7000-8000-000000000000
event_type=order_created
aggregate_type=order
aggregate_id=42
created_at=2026-01-02T03:04:05.000006Z
namespace=shop
tenant_id=11111111-1111-4111-8111-111111111111
dedupe_key=d
content_type=application/json
b=2
ce-id=forged
traceparent=00-1-2-01
`},
		"cloudevents": {wire.Format{CloudEvents: true, Source: "/shop"}, `ce-specversion=1.0
ce-id=01890000-0000-7000-8000-000000000000
ce-source=/shop
ce-type=order_created
ce-time=2026-01-02T03:04:05.000006Z
ce-subject=order/42
ce-partitionkey=order/42
ce-tenantid=11111111-1111-4111-8111-111111111111
ce-dedupekey=d
ce-traceparent=00-1-2-01
b=2
event_id=forged
traceparent=00-1-2-01
`},
	} {
		if got := lines(test.format.Attributes(message(), "ce-")); got != test.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, test.want)
		}
	}
	bare := &outbox.Message{Event: outbox.Event{Topic: "orders", AggregateID: "42"}}
	if got := lines(wire.Format{CloudEvents: true}.Attributes(bare, "")); !strings.Contains(got, "type=orders\n") ||
		!strings.Contains(got, "source=outbox\n") || !strings.Contains(got, "subject=42\n") {
		t.Errorf("a bare event: %s", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o := wire.ParseOptions("create=true&n=3&wait=2s&format=cloudevents&source=/a&mode=b")
	if !o.Bool("create") || o.Int("n", 1) != 3 || o.Duration("wait", time.Second) != 2*time.Second || o.Choice("mode", "a", "b") != "b" ||
		o.Format() != (wire.Format{CloudEvents: true, Source: "/a"}) || o.String("none", "x") != "x" {
		t.Error("an option was misread")
	}
	if err := o.Err(); err != nil {
		t.Error(err)
	}
	for query, words := range map[string]string{
		"create=yes":    `option create is "yes"; it must be true or false`,
		"n=0":           `it must be a whole number above zero`,
		"wait=-1s":      `it must be a time such as 1500ms or 10s`,
		"format=xml":    `it must be plain or cloudevents`,
		"source=/a":     `option source goes with format=cloudevents`,
		"creat=true":    `there is no option "creat" (there are create, format, n, source, wait)`,
		"a=%zz&create=": `name=value`,
	} {
		o := wire.ParseOptions(query)
		o.Bool("create")
		o.Int("n", 1)
		o.Duration("wait", time.Second)
		o.Format()
		if err := o.Err(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %s", query, err, words)
		}
	}
}

var binding = wire.Binding{Prefix: "ce-", ContentType: "content-type"}

// TestDecode reads back what Attributes wrote.
func TestDecode(t *testing.T) {
	t.Parallel()
	for _, format := range []wire.Format{{}, {CloudEvents: true}} {
		sent := message()
		delete(sent.Headers, "event_id")
		delete(sent.Headers, "ce-id")
		sent.CreatedAt = sent.CreatedAt.UTC()
		attributes := make(map[string]string)
		for _, a := range binding.Attributes(format, sent) {
			attributes[a.Name] = a.Value
		}
		got, err := binding.Decode(attributes, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		want := *sent
		want.Payload, want.Topic = []byte("{}"), ""
		if format.CloudEvents {
			want.Namespace = "" // not told
		} else {
			want.Key = ""
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	for _, bad := range []map[string]string{
		{}, {"event_id": "1"}, {"event_id": uuid.NewString(), "tenant_id": "x"}, {"event_id": uuid.NewString(), "created_at": "today"},
	} {
		if _, err := binding.Decode(bad, nil); !errors.Is(err, wire.ErrNoEvent) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
