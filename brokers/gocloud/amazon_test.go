package gocloud_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/publishertest"
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
	requests int
}

func newQueue(t *testing.T, answer func([]entry) (int, string)) *queue {
	t.Helper()
	q := &queue{answer: answer}
	q.Server = httptest.NewServer(q)
	t.Cleanup(q.Close)
	return q
}

func (q *queue) url(name string) string {
	return "awssqs://sqs.example/1/" + name + "?region=eu-west-1&anonymous=true&endpoint=" + url.QueryEscape(q.URL)
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct{ Entries []entry }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests++
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if q.answer != nil {
		if code, body := q.answer(request.Entries); code != 0 {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body) // the client has gone away
			return
		}
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

// The service refuses one message of a request, or the request for one of its messages:
// only that one fails.
func TestOneBadMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, fate string }{
		"one of the request": {`200 {"Failed": [{"Id": "0", "Code": "InternalError", "Message": "as the test wants it"}]}`, "retry"},
		"the request":        {`400 {"__type": "com.amazonaws.sqs#BatchRequestTooLong", "message": "as the test wants it"}`, "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, func(entries []entry) (int, string) {
				for _, e := range entries {
					if e.Body == "bad" {
						code, body, _ := strings.Cut(test.answer, " ")
						return map[string]int{"200": 200, "400": 400}[code], body
					}
				}
				return 0, ""
			})
			messages, fates := publishertest.Messages(300), make([]string, 300)
			messages[150].Payload, fates[150] = []byte("bad"), test.fate
			errs := publishertest.Publish(t, open(t, q.url("orders")), messages)
			publishertest.Fates(t, errs, fates...)
			wantText(t, errs[150], "as the test wants it")
		})
	}
}

// Every answer has its class.
func TestAmazonClasses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code int
		body string
		fate string
	}{
		"no such queue": {400, `{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}`, "retry"},
		"denied":        {403, `{"__type": "com.amazonaws.sqs#AccessDeniedException", "message": "no"}`, "away"},
		"expired":       {403, `{"__type": "ExpiredToken", "message": "no"}`, "away"},
		"over limit":    {400, `{"__type": "com.amazonaws.sqs#OverLimit", "message": "no"}`, "retry"},
		"away":          {503, `{"__type": "ServiceUnavailable", "message": "no"}`, "away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, func([]entry) (int, string) { return test.code, test.body })
			messages := publishertest.Messages(2)
			messages[1].Key = messages[0].Key
			publishertest.Fates(t, publishertest.Publish(t, open(t, q.url("orders")), messages), test.fate, "waits")
		})
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	q.Close()
	publishertest.Fates(t, publishertest.Publish(t, open(t, q.url("orders")), publishertest.Messages(1)), "away")
}

// A service that does not answer costs the time that the caller gave, and what was not
// acknowledged by then is not sent behind the caller's back.
func TestSlowService(t *testing.T) {
	t.Parallel()
	gone, reached := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server looks out for the client only then
		close(reached)
		<-r.Context().Done()
		close(gone)
	}))
	t.Cleanup(server.Close)
	publisher := open(t, (&queue{Server: server}).url("orders"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-reached
		cancel()
	}()
	publishertest.Fates(t, publisher.Publish(ctx, publishertest.Messages(1)), "retry")
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the request goes on")
	}
}
