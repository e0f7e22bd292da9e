package gocloud_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// entry is a message as the client of SQS sends it.
type entry struct {
	ID                string `json:"Id"`
	Body              string `json:"MessageBody"`
	Group             string `json:"MessageGroupId"`
	Deduplication     string `json:"MessageDeduplicationId"`
	MessageAttributes map[string]struct{ StringValue string }
}

// queue answers the driver as SQS would. It stands in for a service that no test can
// have to itself; what it shows is what travels, and what becomes of answers.
type queue struct {
	*httptest.Server
	intake
	// answer is a status and a body for a request, or nothing for the ordinary answer.
	answer   func(entries []entry) (int, string)
	missing  string         // a queue that is not there
	missed   map[string]int // how often each event was sent there
	requests int
}

func newQueue(t testing.TB, answer func([]entry) (int, string)) *queue {
	t.Helper()
	q := &queue{answer: answer, missed: make(map[string]int)}
	q.Server = httptest.NewServer(q)
	t.Cleanup(q.Close)
	return q
}

func (q *queue) url(name string) string {
	return "awssqs://sqs.example/1/" + name + "?region=eu-west-1&anonymous=true&endpoint=" + url.QueryEscape(q.URL)
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []entry
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests++
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if q.missing != "" && strings.HasSuffix(request.QueueURL, q.missing) {
		for _, e := range request.Entries {
			q.missed[e.MessageAttributes["event_id"].StringValue]++
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}`) // the client has gone away
		return
	}
	if q.answer != nil {
		if code, body := q.answer(request.Entries); code != 0 {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body) // the client has gone away
			return
		}
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetQueueAttributes") {
		_, _ = fmt.Fprint(w, `{"Attributes": {}}`) // the client has gone away
		return
	}
	type success struct{ Id, MessageId, MD5OfMessageBody string }
	var answer struct{ Successful []success }
	for _, e := range request.Entries {
		sum := md5.Sum([]byte(e.Body))
		answer.Successful = append(answer.Successful, success{e.ID, "m" + e.ID, hex.EncodeToString(sum[:])})
	}
	q.taken = append(q.taken, request.Entries...)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone away
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	messages := publishertest.Messages(100)
	publishertest.Fates(t, publishertest.Publish(t, open(t, q.url("orders")), messages), make([]string, len(messages))...)
	if len(q.taken) != len(messages) || q.requests >= len(messages) {
		t.Fatalf("%d messages in %d requests", len(q.taken), q.requests)
	}
	for _, e := range q.taken {
		if e.Group != "" || e.MessageAttributes["event_type"].StringValue != "order_created" || len(e.MessageAttributes) != 10 {
			t.Fatalf("a message is %+v", e)
		}
	}
}

func TestFIFO(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	messages := publishertest.Messages(4)
	messages[1].Key = ""
	messages[2].Key = strings.Repeat("k", 129)
	messages[3].Topic = "bills"
	messages[3].ReplayedAt = messages[3].CreatedAt
	publisher := open(t, q.url("{topic}.fifo"))
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Fates(t, errs, "", "", "rejected", "")
	wantText(t, errs[2], "message group")
	groups := make(map[string]string)
	for _, e := range q.taken {
		groups[e.Deduplication] = e.Group
	}
	for i, want := range map[int]string{0: messages[0].Key, 1: messages[1].ID.String(), 3: messages[3].Key} {
		// A replay has an id of its own, or the service would drop it as a duplicate.
		if got := groups[messages[i].DuplicateID()]; got != want {
			t.Errorf("message %d is of group %q, want %q", i, got, want)
		}
	}
}

// What the service can never take is rejected by name.
func TestAmazonLimits(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	messages := publishertest.Messages(4)
	messages[0].Headers = map[string]string{"a": "1", "b": "2"}
	messages[1].Payload = nil
	messages[2].Payload = []byte{0xff} // one attribute more, which says that it is in base64
	messages[3].Headers = map[string]string{"x-empty": ""}
	errs := publishertest.Publish(t, open(t, q.url("orders")), messages)
	publishertest.Fates(t, errs, "rejected", "rejected", "rejected", "rejected")
	for i, says := range []string{"11 attributes", "empty", "11 attributes", "x-empty"} {
		wantText(t, errs[i], says)
	}
	if q.requests != 0 {
		t.Errorf("%d requests were made", q.requests)
	}
}
