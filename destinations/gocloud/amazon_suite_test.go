package gocloud_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// amazonFeatures are those of SNS and SQS, which do not take a payload that is empty.
var amazonFeatures = publishertest.Features{Attributes: true, Poison: func(m *outbox.Message) { m.Payload = nil }}

// intake is what a stand-in has taken.
type intake struct {
	mu    sync.Mutex
	taken []entry
}

func (i *intake) all() []entry {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.taken)
}

// amazonHarness reads back what a stand-in has taken.
type amazonHarness struct {
	publisher outbox.Publisher
	intake    *intake
}

func (h amazonHarness) Publisher() outbox.Publisher { return h.publisher }

func (h amazonHarness) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	var list []publishertest.Received
	for _, e := range h.intake.all() {
		r := publishertest.Received{Payload: []byte(e.Body), Attributes: make(map[string]string)}
		if e.Group != e.Deduplication { // a group of its own, which stands for no key
			r.Key = e.Group
		}
		for name, value := range e.MessageAttributes {
			var err error
			if r.Attributes[name], err = url.PathUnescape(value.StringValue); err != nil {
				t.Fatal(err)
			}
		}
		if _, is := r.Attributes["base64encoded"]; is {
			delete(r.Attributes, "base64encoded")
			var err error
			if r.Payload, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if r.ID, err = uuid.Parse(r.Attributes[wire.EventID]); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// testAmazon runs the suite on a plain name and on one of a FIFO, which has keys. stand gives the
// address of that name at a stand-in of its own.
func testAmazon(t *testing.T, stand func(t *testing.T, name string) (address string, taken *intake)) {
	t.Helper()
	for name, keys := range map[string]bool{"orders": false, "orders.fifo": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			features := amazonFeatures
			features.Keys = keys
			publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
				t.Helper()
				address, taken := stand(t, name)
				return amazonHarness{open(t, address), taken}
			})
		})
	}
}

func TestQueueConformance(t *testing.T) {
	t.Parallel()
	testAmazon(t, func(t *testing.T, name string) (string, *intake) {
		t.Helper()
		q := newQueue(t, nil)
		return q.url(name), &q.intake
	})
}

// notifications answers the driver as SNS would.
type notifications struct {
	*httptest.Server
	intake
	arns map[string]int
}

func newNotifications(t *testing.T) *notifications {
	t.Helper()
	n := &notifications{arns: make(map[string]int)}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Close)
	return n
}

func (n *notifications) url(arn string) string {
	return "awssns:///" + arn + "?region=eu-west-1&anonymous=true&endpoint=" + url.QueryEscape(n.URL)
}

func (n *notifications) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arns[r.PostForm.Get("TopicArn")]++
	w.Header().Set("Content-Type", "text/xml")
	if r.PostForm.Get("Action") == "GetTopicAttributes" {
		n.attributes(w, r.PostForm.Get("TopicArn"))
		return
	}
	var answer strings.Builder
	for i := 1; ; i++ {
		member := fmt.Sprintf("PublishBatchRequestEntries.member.%d.", i)
		id := r.PostForm.Get(member + "Id")
		if id == "" {
			break
		}
		e := entry{
			ID: id, Body: r.PostForm.Get(member + "Message"), Group: r.PostForm.Get(member + "MessageGroupId"),
			Deduplication: r.PostForm.Get(member + "MessageDeduplicationId"), MessageAttributes: make(map[string]struct{ StringValue string }),
		}
		for a := 1; r.PostForm.Has(fmt.Sprintf("%sMessageAttributes.entry.%d.Name", member, a)); a++ {
			attribute := fmt.Sprintf("%sMessageAttributes.entry.%d.", member, a)
			e.MessageAttributes[r.PostForm.Get(attribute+"Name")] = struct{ StringValue string }{r.PostForm.Get(attribute + "Value.StringValue")}
		}
		n.taken = append(n.taken, e)
		fmt.Fprintf(&answer, "<member><Id>%s</Id><MessageId>m</MessageId></member>", id)
	}
	_, _ = fmt.Fprintf(w, "<PublishBatchResponse><PublishBatchResult><Successful>%s</Successful></PublishBatchResult></PublishBatchResponse>",
		answer.String()) // the client has gone away
}

// attributes answers a question for a topic; those that end in missing are.
func (*notifications) attributes(w http.ResponseWriter, arn string) {
	answer := "<GetTopicAttributesResponse><GetTopicAttributesResult><Attributes/></GetTopicAttributesResult></GetTopicAttributesResponse>"
	if strings.HasSuffix(arn, "missing") {
		w.WriteHeader(http.StatusNotFound)
		answer = "<ErrorResponse><Error><Type>Sender</Type><Code>NotFound</Code><Message>no</Message></Error></ErrorResponse>"
	}
	_, _ = io.WriteString(w, answer) // the client has gone away
}

func TestNotificationPing(t *testing.T) {
	t.Parallel()
	publisher := open(t, newNotifications(t).url("arn:aws:sns:eu-west-1:1:{topic}"))
	publishertest.Fates(t, []error{
		publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), "orders"), publisher.PingTopic(t.Context(), "missing"),
	}, "", "", "topic missing")
}

// A topic of SNS takes the message group and the id against duplicates the way a queue does.
func TestNotificationConformance(t *testing.T) {
	t.Parallel()
	testAmazon(t, func(t *testing.T, name string) (string, *intake) {
		t.Helper()
		n := newNotifications(t)
		return n.url("arn:aws:sns:eu-west-1:1:" + name), &n.intake
	})
}

func TestNotificationFIFO(t *testing.T) {
	t.Parallel()
	n := newNotifications(t)
	const arn = "arn:aws:sns:eu-west-1:1:orders.fifo"
	messages := publishertest.Messages(2)
	messages[1].ReplayedAt = messages[1].CreatedAt
	publishertest.Fates(t, publishertest.Publish(t, open(t, n.url(arn)), messages), "", "")
	got, want := make(map[string]string), make(map[string]string)
	for _, e := range n.taken {
		got[e.Deduplication] = e.Group
	}
	for i := range messages {
		want[messages[i].DuplicateID()] = messages[i].Key
	}
	if !maps.Equal(got, want) || len(n.arns) != 1 || n.arns[arn] == 0 {
		t.Errorf("the groups, by the id against duplicates, are %q, want %q; topics %v", got, want, n.arns)
	}
}
