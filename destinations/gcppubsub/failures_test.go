package gcppubsub_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func wantText(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v; it should say %q", err, text)
	}
}

// Every answer of the service has its class.
func TestClasses(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]string{
		codes.InvalidArgument: "unclear",
		codes.NotFound:        "topic missing", codes.PermissionDenied: "topic missing",
		codes.ResourceExhausted: "topic away", codes.FailedPrecondition: "topic away",
		codes.Unavailable: "away", codes.Unauthenticated: "misconfigured", codes.Unimplemented: "misconfigured",
		codes.DeadlineExceeded: "silence", codes.Canceled: "silence",
		codes.Internal: "unclear", codes.Aborted: "unclear", codes.Unknown: "unclear",
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			broker := pubsubtest.New(t, pstest.WithErrorInjection("Publish", code, "as the test wants it"))
			errs := publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), ofKeys("a", "a"))
			second := "waits"
			if want == "away" || want == "silence" {
				second = want // they went together, and nobody said that they were not taken
			}
			publishertest.Fates(t, errs, want, second)
			wantText(t, errs[0], "as the test wants it")
			wantText(t, errs[0], "orders")
		})
	}
}

// The service stumbles once; nobody notices.
func TestShortTrouble(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.Aborted} {
		trouble := once(status.Error(code, "for a moment"))
		broker := pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error { return trouble() }))
		messages := ofKeys("a", "a")
		publishertest.Fates(t, publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages), "", "")
		wantPayloads(t, broker, messages...)
	}
}

// After a failed message nothing of its key is sent, in this batch; the next one may.
func TestFailedKey(t *testing.T) {
	t.Parallel()
	messages := ofKeys("a", "a", "a", "b")
	for i := range messages {
		messages[i].Payload = fmt.Appendf(nil, "%d%s", i, make([]byte, 700_000)) // a request each
	}
	trouble := once(status.Error(codes.Unknown, "not now"))
	broker := pubsubtest.New(t, reacting(func(r *pubsubpb.PublishRequest) error {
		if r.Messages[0].Data[0] == '1' {
			return trouble()
		}
		return nil
	}))
	publisher := pubsubtest.Open(t, broker.URL())
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "", "unclear", "waits", "")
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages[1:3]), "", "")
	var ofA []string
	for _, r := range broker.Received(t) {
		if r.Key == "a" {
			ofA = append(ofA, string(r.Payload[:1]))
		}
	}
	if got := strings.Join(ofA, ""); got != "012" {
		t.Errorf("key a arrived as %s, want 012", got)
	}
}

// The service refuses a request, or stumbles over it, for one of its messages: only that one fails.
func TestOneBadMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key, after string
		refused    error
		fate       string
	}{
		"invalid, without a key":   {"", "", status.Error(codes.InvalidArgument, "as the test wants it"), "unclear"},
		"invalid, of one key":      {"a", "waits", status.Error(codes.InvalidArgument, "as the test wants it"), "unclear"},
		"unclear, without a key":   {"", "", status.Error(codes.Unknown, "as the test wants it"), "unclear"},
		"unclear, of one key":      {"a", "waits", status.Error(codes.Unknown, "as the test wants it"), "unclear"},
		"too large, without a key": {"", "", tooLarge(), "rejected"},
		"too large, of one key":    {"a", "waits", tooLarge(), "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := pubsubtest.New(t, reacting(func(r *pubsubpb.PublishRequest) error {
				for _, m := range r.Messages {
					if string(m.Data) == "bad" {
						return test.refused
					}
				}
				return nil
			}))
			messages, fates := publishertest.Messages(50), make([]string, 50)
			for i := range messages {
				messages[i].Key = test.key
				if i > 17 {
					fates[i] = test.after
				}
			}
			messages[17].Payload, fates[17] = []byte("bad"), test.fate
			publishertest.Fates(t, publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages), fates...)
			arrived := append([]outbox.Message(nil), messages[:17]...)
			if test.after == "" {
				arrived = append(arrived, messages[18:]...)
			}
			wantPayloads(t, broker, arrived...)
		})
	}
}

// tooLarge is how a server that is not Google's refuses a request above its limit.
func tooLarge() error {
	return status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5000078 vs. 4194304)")
}

// A topic that takes nothing stops its own messages, and is not asked for each of them.
func TestOneTopicAway(t *testing.T) {
	t.Parallel()
	for code, fate := range map[codes.Code]string{
		codes.NotFound: "topic missing", codes.PermissionDenied: "topic missing", codes.ResourceExhausted: "topic away",
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			requests := 0 // the server reacts to one request at a time
			broker := pubsubtest.New(t, reacting(func(r *pubsubpb.PublishRequest) error {
				if r.Topic == pubsubtest.TopicPath(publishertest.Topic) {
					return nil
				}
				requests++
				return status.Error(code, "as the test wants it")
			}))
			messages := publishertest.Messages(600)
			for i := range messages {
				if i%2 == 0 {
					messages[i].Topic = "payments"
				}
			}
			fates := make(map[string]int)
			for i, err := range publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages) {
				if i%2 == 1 && err != nil {
					t.Fatalf("a message to another topic: %v", err)
				}
				fates[publishertest.Fate(err)]++
			}
			// 64 requests are under way at most when the first is answered.
			if fates[fate] == 0 || fates[fate]+fates["waits"] != 300 || fates[fate] != requests || requests > 64 {
				t.Errorf("the results are %v, after %d requests", fates, requests)
			}
		})
	}
}

// A server that is not Google's takes less: the message is at fault, and not a quota.
func TestLowerLimit(t *testing.T) {
	t.Parallel()
	messages := ofKeys("a", "b")
	messages[0].Payload = make([]byte, 5_000_000)
	errs := publishertest.Publish(t, pubsubtest.Open(t, pubsubtest.New(t).URL()), messages)
	publishertest.Fates(t, errs, "rejected", "")
	if outbox.ReasonOf(errs[0]) != outbox.ReasonTooLarge {
		t.Errorf("the reason is %s", outbox.ReasonOf(errs[0]))
	}
}

// What the service cannot carry is rejected by name and spoils nothing else.
func TestLimits(t *testing.T) {
	t.Parallel()
	header := func(name, value string) func(*outbox.Message) {
		return func(m *outbox.Message) { m.Headers = map[string]string{name: value} }
	}
	for name, test := range map[string]struct {
		spoil func(*outbox.Message)
		says  string
	}{
		"payload":       {func(m *outbox.Message) { m.Payload = make([]byte, 10_000_001) }, "10000000"},
		"key":           {func(m *outbox.Message) { m.Key = strings.Repeat("k", 1025) }, "1024"},
		"key's bytes":   {func(m *outbox.Message) { m.Key = "\xff" }, "UTF-8"},
		"name's length": {header(strings.Repeat("n", 257), "v"), "nnnn"},
		"goog":          {header("googclient", "v"), "googclient"},
		"no name":       {header("", "v"), "no name"},
		"value":         {header("x-long", strings.Repeat("v", 1025)), "x-long"},
		"value's bytes": {header("x-bytes", "\xff"), "x-bytes"},
		"attributes": {func(m *outbox.Message) {
			m.Headers = make(map[string]string)
			for i := range 100 {
				m.Headers[fmt.Sprint("h", i)] = "v"
			}
		}, "attributes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := pubsubtest.New(t)
			messages := ofKeys("", "", "")
			test.spoil(&messages[1])
			errs := publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages)
			publishertest.Fates(t, errs, "", "rejected", "")
			wantText(t, errs[1], test.says)
			if reason := outbox.ReasonOf(errs[1]); (reason == outbox.ReasonTooLarge) != (name == "payload") {
				t.Errorf("the reason is %s", reason)
			}
			wantPayloads(t, broker, messages[0], messages[2])
		})
	}
}

// A service that does not answer costs the time that the caller gave, and no more.
func TestSlowService(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(reached) })
	broker := pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error {
		first()
		<-release
		return nil
	}))
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits for it
	errs := publishertest.Abandon(t, pubsubtest.Open(t, broker.URL()), publishertest.Messages(500), func() { <-reached })
	fates := make(map[string]int)
	for _, err := range errs {
		fates[publishertest.Fate(err)]++
	}
	// 64 requests are under way at most; what was not sent is not counted as tried.
	if fates["silence"] == 0 || fates["silence"] > 64 || fates["waits"] != 500-fates["silence"] {
		t.Errorf("the results are %v", fates)
	}
}

// The connection is cut in the middle of a batch, and comes back.
func TestOutage(t *testing.T) {
	t.Parallel()
	var broker *pubsubtest.Broker
	var cut sync.Once
	count := 0 // the server reacts to one request at a time
	broker = pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error {
		if count++; count == 100 {
			cut.Do(func() { broker.Stop(t) })
		}
		return nil
	}))
	publisher := pubsubtest.Open(t, broker.URL())
	left := publishertest.Messages(500)
	for i := range left {
		left[i].Key = fmt.Sprint("key", i%450)
	}
	errs := publishertest.Publish(t, publisher, left)
	arrived := make(map[string]bool)
	for _, r := range broker.Received(t) {
		arrived[r.ID.String()] = true
	}
	fates := make(map[string]int)
	var again []outbox.Message
	for i, err := range errs {
		fates[publishertest.Fate(err)]++
		if err == nil && !arrived[left[i].ID.String()] {
			t.Errorf("message %d is acknowledged and has not arrived", i)
		} else if err != nil {
			again = append(again, left[i])
		}
	}
	if fates["away"] == 0 || fates["away"]+fates["waits"]+fates[""] != len(left) {
		t.Errorf("the results are %v", fates)
	}
	if err := publisher.Ping(t.Context()); outbox.Classify(err) != outbox.ClassUnavailable {
		t.Errorf("a ping into the outage: %v", err)
	}

	broker.Start(t)
	publishertest.Answers(t, publisher)
	publishertest.Fates(t, publishertest.Publish(t, publisher, again), make([]string, len(again))...)
	for _, r := range broker.Received(t) {
		arrived[r.ID.String()] = true
	}
	if len(arrived) != len(left) {
		t.Errorf("%d messages have arrived, want %d", len(arrived), len(left))
	}
}

// An outage that is longer than the caller's patience is an outage still.
func TestOutageAndShortDeadline(t *testing.T) {
	t.Parallel()
	requests := 0 // the server reacts to one request at a time
	again, release := make(chan struct{}), make(chan struct{})
	broker := pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error {
		if requests++; requests == 2 {
			close(again)
			<-release
		}
		return status.Error(codes.Unavailable, "away")
	}))
	t.Cleanup(func() { close(release) })
	errs := publishertest.Abandon(t, pubsubtest.Open(t, broker.URL()), ofKeys("a", "a"), func() { <-again })
	publishertest.Fates(t, errs, "away", "away")
	wantText(t, errs[0], "away")
}

// A publisher does not need the service to be there.
func TestAbsent(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	broker.Stop(t)
	publishertest.Fates(t, publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), ofKeys("a", "a")), "away", "away")
}
