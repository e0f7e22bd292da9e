package gocloud_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packfinderz/outbox/destinations/gocloud"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// The service refuses one message of a request, or the request for one of its messages:
// only that one fails.
func TestOneBadMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, fate string }{
		"one of the request": {`200 {"Failed": [{"Id": "0", "Code": "InternalError", "Message": "as the test wants it"}]}`, "unclear"},
		"its contents":       {`200 {"Failed": [{"Id": "0", "Code": "InvalidMessageContents", "Message": "as the test wants it"}]}`, "rejected"},
		"its group":          {`200 {"Failed": [{"Id": "0", "Code": "InvalidParameterValue", "Message": "as the test wants it"}]}`, "unclear"},
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

// Every answer has its class, for a message and for a ping: of a destination with one queue, of one
// with a queue for each topic, and of a topic.
func TestAmazonClasses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code                      int
		body                      string
		fate                      string
		ping, pingOfMany, ofTopic string
	}{
		"no such queue":    {400, `{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}`, "topic missing", "misconfigured", "", "topic missing"},
		"not of this host": {404, `{"__type": "InvalidAddress", "message": "no"}`, "topic missing", "misconfigured", "", "topic missing"},
		"no queue at all":  {400, `{"__type": "InvalidParameterValue", "message": "Invalid parameter: QueueUrl"}`, "topic missing", "misconfigured", "", "topic missing"},
		"denied":           {403, `{"__type": "com.amazonaws.sqs#AccessDeniedException", "message": "no"}`, "topic missing", "", "", ""},
		"expired":          {403, `{"__type": "ExpiredToken", "message": "no"}`, "misconfigured", "misconfigured", "misconfigured", "misconfigured"},
		"wrong key":        {403, `{"__type": "InvalidClientTokenId", "message": "no"}`, "misconfigured", "misconfigured", "misconfigured", "misconfigured"},
		"over limit":       {400, `{"__type": "com.amazonaws.sqs#OverLimit", "message": "no"}`, "topic away", "unclear", "unclear", "unclear"},
		"throttled":        {400, `{"__type": "ThrottlingException", "message": "no"}`, "topic away", "away", "", "topic away"},
		"away":             {503, `{"__type": "ServiceUnavailable", "message": "no"}`, "away", "away", "away", "away"},
		"its own trouble":  {500, `{"__type": "InternalFailure", "message": "no"}`, "unclear", "unclear", "unclear", "unclear"},
		"too large":        {400, `{"__type": "com.amazonaws.sqs#BatchRequestTooLong", "message": "no"}`, "rejected", "rejected", "rejected", "rejected"},
		"for another kind": {400, `{"__type": "com.amazonaws.sqs#UnsupportedOperation", "message": "no"}`, "unclear", "unclear", "unclear", "unclear"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, func([]entry) (int, string) { return test.code, test.body })
			publisher, many := open(t, q.url("orders")), open(t, q.url("{topic}"))
			messages := publishertest.Messages(2)
			messages[1].Key = messages[0].Key
			publishertest.Fates(t, publishertest.Publish(t, publisher, messages), test.fate, "waits")
			publishertest.Fates(t, []error{
				publisher.Ping(t.Context()), many.Ping(t.Context()), publisher.PingTopic(t.Context(), "orders"), many.PingTopic(t.Context(), "orders"),
			}, test.ping, test.pingOfMany, test.ofTopic, test.ofTopic)
		})
	}
}

// A queue that is missing stops its own messages, and each is asked for once.
func TestOneQueueMissing(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	q.missing = "payments"
	publisher := open(t, q.url("{topic}"))
	messages, fates := publishertest.Messages(100), make([]string, 100)
	for i := range messages {
		if i%2 == 0 {
			messages[i].Topic, fates[i] = "payments", "topic missing"
		}
	}
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), fates...)
	for id, times := range q.missed {
		if id == "" || times > 1 {
			t.Errorf("event %q was sent to the missing queue %d times", id, times)
		}
	}
	if len(q.missed) == 0 {
		t.Error("nothing was sent to the missing queue")
	}
	publishertest.Fates(t, []error{
		publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), "payments"), publisher.PingTopic(t.Context(), "orders"),
	}, "", "topic missing", "")
}

// Without credentials nothing can be sent, and nothing is counted.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", t.TempDir())
	publisher := open(t, strings.Replace(newQueue(t, nil).url("orders"), "&anonymous=true", "", 1))
	publishertest.Fates(t, append(publishertest.Publish(t, publisher, publishertest.Messages(1)), publisher.Ping(t.Context())), "misconfigured", "misconfigured")
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	q.Close()
	publisher := open(t, q.url("orders"))
	publishertest.Fates(t, publishertest.Publish(t, publisher, publishertest.Messages(1)), "away")
	publishertest.Fates(t, []error{publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), "orders")}, "away", "away")
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
	publishertest.Fates(t, publisher.Publish(ctx, publishertest.Messages(1)), "silence")
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the request goes on")
	}
}

// A service that hangs has got a hundred messages at most when the time is up. The rest was not sent,
// and another batch on the same topic does not pay for it.
func TestHungService(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	reached := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server looks out for the client only then
		if requests.Add(1) == 10 {
			close(reached)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	publisher := open(t, (&queue{Server: server}).url("orders"))
	other := make(chan []error, 1)
	errs := publishertest.Abandon(t, publisher, publishertest.Messages(500), func() {
		<-reached // all that can be under way is
		go func() { other <- publisher.Publish(t.Context(), publishertest.Messages(10)) }()
		await.Until(t, "the other batch to use the topic", func() bool { return gocloud.Users(publisher) == 510 })
	})
	fates := make(map[string]int)
	for _, err := range errs {
		fates[publishertest.Fate(err)]++
	}
	if fates["silence"] == 0 || fates["silence"] > 100 || fates["waits"] != 500-fates["silence"] {
		t.Errorf("the results are %v", fates)
	}
	publishertest.Fates(t, publishertest.Ends(t, func() []error { return <-other }), slices.Repeat([]string{"waits"}, 10)...)
}
