package consume_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/outboxtest"
)

// answer is a set of handlers that always answers the same.
type answer struct{ err error }

func (a answer) Publish(context.Context, []outbox.Message) []error { return []error{a.err} }
func (a answer) Handles(string) bool                               { return true }
func (a answer) HandlesAll() bool                                  { return true }

// reports collects what became of deliveries.
type reports struct{ list []consume.Report }

func (r *reports) OnDelivery(report consume.Report) { r.list = append(r.list, report) }

func TestVerdicts(t *testing.T) {
	t.Parallel()
	failure := errors.New("the effect\nfailed: é")
	event := outbox.Message{Event: outbox.Event{
		ID: uuid.New(), Topic: "orders", Type: "order_created", Payload: []byte("{}"), Headers: map[string]string{"traceparent": "t"},
	}, Attempt: 1}
	last, endless := event, event
	last.Attempt, endless.Attempt = 3, 7
	for name, test := range map[string]struct {
		delivery consume.Delivery
		handlers error
		away     bool
		outcome  consume.Outcome
		reason   string
		after    time.Duration // at most
	}{
		"handled":           {delivery: consume.Delivery{Message: event}, outcome: consume.Handled},
		"failed":            {delivery: consume.Delivery{Message: event}, handlers: failure, outcome: consume.Again, after: time.Second},
		"failed once more":  {delivery: consume.Delivery{Message: last}, handlers: failure, outcome: consume.DeadLetter, reason: "max_deliveries"},
		"unclear":           {delivery: consume.Delivery{Message: event}, handlers: outbox.Unclear(failure), outcome: consume.Again, after: time.Second},
		"unclear once more": {delivery: consume.Delivery{Message: last}, handlers: outbox.Unclear(failure), outcome: consume.DeadLetter, reason: "max_deliveries"},
		"no answer in time": {delivery: consume.Delivery{Message: event}, handlers: context.DeadlineExceeded, outcome: consume.Again, after: time.Second},
		"terminal":          {delivery: consume.Delivery{Message: event}, handlers: outbox.Terminal(failure), outcome: consume.DeadLetter, reason: "terminal"},
		"unavailable":       {delivery: consume.Delivery{Message: last}, handlers: outbox.Unavailable(failure), outcome: consume.Again, after: 4 * time.Second},
		"in progress":       {delivery: consume.Delivery{Message: last}, handlers: &inbox.InProgressError{Left: 7 * time.Second}, outcome: consume.Again, after: 7 * time.Second},
		"no event":          {delivery: consume.Delivery{Err: failure}, outcome: consume.DeadLetter, reason: "terminal"},
		"not in registry":   {delivery: consume.Delivery{Message: outbox.Message{Event: outbox.Event{ID: event.ID, Type: "other"}}}, outcome: consume.DeadLetter, reason: "unknown_event_type"},
		"letters are away":  {delivery: consume.Delivery{Message: last}, handlers: failure, away: true, outcome: consume.Again, after: 4 * time.Second},
		"ends its consumer": {delivery: consume.Delivery{Message: endless}, outcome: consume.DeadLetter, reason: "max_deliveries"},
		"not attempted yet": {delivery: consume.Delivery{Message: last}, handlers: outbox.ErrNotAttempted, outcome: consume.Again, after: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			letters, told := &outboxtest.Broker{}, &reports{}
			config := consume.Config{
				Handlers: answer{test.handlers}, Registry: outbox.Registry{"order_created": {Topic: "elsewhere"}}, MaxDeliveries: 3,
				Unknown: consume.DeadLetterUnknown, DeadLetters: letters, DeadLetterTopic: "orders.dead", Hooks: []any{told}, Logger: slog.New(slog.DiscardHandler),
			}
			if test.away {
				config.DeadLetters = answer{failure}
			}
			processor, err := consume.New(config)
			if err != nil {
				t.Fatal(err)
			}
			verdict := processor.Process(t.Context(), test.delivery)
			if len(told.list) != 1 || told.list[0].Outcome != test.outcome {
				t.Fatalf("told %+v, want %s", told.list, test.outcome)
			}
			if verdict.Ack != (test.outcome != consume.Again) || verdict.After > test.after || test.after > 0 && verdict.After < test.after/2 {
				t.Errorf("verdict %+v, want a wait of at most %s", verdict, test.after)
			}
			buried := letters.Received()
			if test.outcome != consume.DeadLetter {
				if len(buried) > 0 {
					t.Errorf("a dead letter: %+v", buried)
				}
				return
			}
			if len(buried) != 1 {
				t.Fatalf("%d dead letters", len(buried))
			}
			letter := buried[0]
			if letter.Topic != "orders.dead" || letter.Headers[consume.DeadReason] != test.reason || letter.ID == uuid.Nil {
				t.Errorf("the letter is %+v, want the reason %s", letter, test.reason)
			}
			if text := letter.Headers[consume.DeadError]; test.handlers != nil && text != "the effect failed: ?" {
				t.Errorf("the error is %q", text)
			}
			if test.delivery.Message.Type == event.Type && (letter.Headers[consume.DeadTopic] != "orders" || letter.Headers["traceparent"] != "t" ||
				letter.ID != event.ID || string(letter.Payload) != "{}" || event.Headers[consume.DeadReason] != "") {
				t.Errorf("the letter is %+v", letter)
			}
		})
	}
}

// TestNothingIsGivenUp has no dead letters: what fails comes again without end.
func TestNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	processor, err := consume.New(consume.Config{Handlers: answer{outbox.Terminal(errors.New("no"))}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if verdict := processor.Process(t.Context(), consume.Delivery{Message: outbox.Message{Attempt: 1000}}); verdict.Ack {
		t.Error("an event was dropped")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if verdict := processor.Process(ctx, consume.Delivery{}); verdict.Ack || verdict.After != 0 {
		t.Errorf("a consumer that stops answers %+v", verdict)
	}
}

// TestOutage has something be away for longer than any event may fail: none becomes a dead letter by it.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"away": outbox.Unavailable(errors.New("no route")), "elsewhere": &inbox.InProgressError{Left: time.Second},
	} {
		letters := &outboxtest.Broker{}
		processor, err := consume.New(consume.Config{
			Handlers: answer{failure}, MaxDeliveries: 3, DeadLetters: letters, DeadLetterTopic: "dead", Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		event := outbox.Message{Event: outbox.Event{ID: uuid.New(), Payload: []byte("{}")}}
		for event.Attempt = 1; event.Attempt <= 20; event.Attempt++ {
			if verdict := processor.Process(t.Context(), consume.Delivery{Message: event}); verdict.Ack {
				t.Fatalf("%s: delivery %d was acknowledged; the dead letters are %+v", name, event.Attempt, letters.Received())
			}
		}
	}
}

// TestOutageOfMany has so many events wait for something that is away that not all of them are remembered: the first
// ones are, for as long as ten thousand others.
func TestOutageOfMany(t *testing.T) {
	t.Parallel()
	letters := &outboxtest.Broker{}
	processor, err := consume.New(consume.Config{
		Handlers: answer{outbox.Unavailable(errors.New("no route"))}, MaxDeliveries: 3, DeadLetters: letters, DeadLetterTopic: "dead",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(id uuid.UUID, attempt int) {
		t.Helper()
		event := outbox.Message{Event: outbox.Event{ID: id, Payload: []byte("{}")}, Attempt: attempt}
		if verdict := processor.Process(t.Context(), consume.Delivery{Message: event}); verdict.Ack {
			t.Fatalf("delivery %d was acknowledged; the dead letters are %+v", attempt, letters.Received())
		}
	}
	first := uuid.New()
	deliver(first, 1)
	for range 10_000 {
		deliver(uuid.New(), 1)
	}
	deliver(first, 100)
}

// TestStopIsNoFailure ends a consumer in the middle of an event's last delivery: its handler did not fail, so the
// event comes again and is no dead letter.
func TestStopIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	letters, told := &outboxtest.Broker{}, &reports{}
	processor, err := consume.New(consume.Config{
		Handlers: stopped{stop}, Unknown: consume.RetryUnknown, MaxDeliveries: 3, DeadLetters: letters, DeadLetterTopic: "dead", Hooks: []any{told}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	event := outbox.Message{Event: outbox.Event{ID: uuid.New(), Payload: []byte("{}")}, Attempt: 3}
	verdict := processor.Process(ctx, consume.Delivery{Message: event})
	if verdict.Ack || verdict.After != 0 || told.list[0].Outcome != consume.Again || len(letters.Received()) > 0 {
		t.Errorf("an event that the stop interrupted: %+v, %s, dead letters %+v; want it to come again at once",
			verdict, told.list[0].Outcome, letters.Received())
	}
}

// stopped is a set of handlers whose consumer is stopped while they run.
type stopped struct{ stop context.CancelFunc }

func (s stopped) Publish(ctx context.Context, _ []outbox.Message) []error {
	s.stop()
	return []error{ctx.Err()}
}

// panics is a publisher that does.
type panics struct{}

func (panics) Publish(context.Context, []outbox.Message) []error { panic("out of order") }

// TestPanic has handlers and dead letters that panic: the event has failed, and is not lost.
func TestPanic(t *testing.T) {
	t.Parallel()
	letters := &outboxtest.Broker{}
	for _, test := range []struct {
		config consume.Config
		dead   int
	}{
		{consume.Config{Handlers: panics{}, Unknown: consume.RetryUnknown, DeadLetters: letters}, 1},
		{consume.Config{Handlers: answer{errors.New("no")}, DeadLetters: panics{}}, 0},
	} {
		test.config.DeadLetterTopic, test.config.Logger, test.config.MaxDeliveries = "dead", slog.New(slog.DiscardHandler), 2
		processor, err := consume.New(test.config)
		if err != nil {
			t.Fatal(err)
		}
		for attempt := range 2 {
			delivery := consume.Delivery{Message: outbox.Message{Event: outbox.Event{ID: uuid.New()}, Attempt: attempt + 1}}
			if verdict := processor.Process(t.Context(), delivery); verdict.Ack != (attempt+1 == 2 && test.dead == 1) {
				t.Errorf("delivery %d: %+v", attempt+1, verdict)
			}
		}
	}
	if list := letters.Received(); len(list) != 1 || list[0].Headers[consume.DeadError] != "publisher panicked: out of order" {
		t.Errorf("dead letters: %+v", list)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for words, config := range map[string]consume.Config{
		"Handlers is missing": {},
		"go together":         {Handlers: answer{}, DeadLetterTopic: "x"},
		"MaxDeliveries is -1": {Handlers: answer{}, MaxDeliveries: -1},
		"Concurrency is -1":   {Handlers: answer{}, Concurrency: -1},
		"Grace is -1s":        {Handlers: answer{}, Grace: -time.Second},
	} {
		if _, err := consume.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %s", err, words)
		}
	}
}
