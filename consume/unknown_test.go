package consume_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/outboxtest"
)

func succeeds(context.Context, outbox.Message) error { return nil }

// newHandlers has a handler for order_created, and for all other types if that is wanted.
func newHandlers(t *testing.T, config handlers.Config, all bool) *handlers.Publisher {
	t.Helper()
	p, err := handlers.New(config)
	if err == nil {
		err = p.Register("order_created", "bill", succeeds)
	}
	if err == nil && all {
		err = p.Otherwise("other", succeeds)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestUnknownIsRequired has a consumer that does not say what becomes of unknown types.
func TestUnknownIsRequired(t *testing.T) {
	t.Parallel()
	some, all := newHandlers(t, handlers.Config{}, false), newHandlers(t, handlers.Config{}, true)
	registry := outbox.Registry{"order_created": {}}
	for name, test := range map[string]struct {
		config consume.Config
		words  []string // of the error; none if it is taken
	}{
		"some types":                    {consume.Config{Handlers: some}, []string{"IgnoreUnknown", "DeadLetterUnknown", "RetryUnknown"}},
		"a publisher that does not say": {consume.Config{Handlers: panics{}}, []string{"IgnoreUnknown", "DeadLetterUnknown", "RetryUnknown"}},
		"all types":                     {consume.Config{Handlers: all}, nil},
		"all types, some registered":    {consume.Config{Handlers: all, Registry: registry}, []string{"Config.Unknown is missing"}},
		"ignored":                       {consume.Config{Handlers: some, Unknown: consume.IgnoreUnknown}, nil},
		"retried":                       {consume.Config{Handlers: some, Unknown: consume.RetryUnknown}, nil},
		"letters to nobody":             {consume.Config{Handlers: some, Unknown: consume.DeadLetterUnknown}, []string{"needs Config.DeadLetters"}},
		"no choice":                     {consume.Config{Handlers: some, Unknown: "drop"}, []string{`"drop"`, "IgnoreUnknown"}},
	} {
		_, err := consume.New(test.config)
		if (err == nil) != (test.words == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, word := range test.words {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v; want %s in it", name, err, word)
			}
		}
	}
}

// TestUnknown has an event of an unknown type: to the handlers, to handlers that would try it again in
// a relay, and to the registry.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]consume.Config{
		"no handler":                  {Handlers: newHandlers(t, handlers.Config{}, false)},
		"no handler, RetryUnknown":    {Handlers: newHandlers(t, handlers.Config{RetryUnknown: true}, false)},
		"a handler, not in registry":  {Handlers: newHandlers(t, handlers.Config{}, true), Registry: outbox.Registry{"order_created": {}}},
		"a publisher of its own says": {Handlers: answer{&outbox.TerminalError{Reason: outbox.ReasonUnknownType, Err: context.Canceled}}},
	} {
		for unknown, want := range map[consume.Unknown][2]consume.Outcome{
			consume.IgnoreUnknown:     {consume.Ignored, consume.Ignored},
			consume.DeadLetterUnknown: {consume.DeadLetter, consume.DeadLetter},
			consume.RetryUnknown:      {consume.Again, consume.DeadLetter},
		} {
			t.Run(name+"/"+string(unknown), func(t *testing.T) {
				t.Parallel()
				letters, told, config := &outboxtest.Broker{}, &reports{}, config
				config.Unknown, config.MaxDeliveries, config.Hooks, config.Logger = unknown, 3, []any{told}, slog.New(slog.DiscardHandler)
				config.DeadLetters, config.DeadLetterTopic = letters, "dead"
				processor, err := consume.New(config)
				if err != nil {
					t.Fatal(err)
				}
				for i, attempt := range []int{1, 3} {
					event := outbox.Message{Event: outbox.Event{ID: uuid.New(), Type: "other", Payload: []byte("{}")}, Attempt: attempt}
					verdict := processor.Process(t.Context(), consume.Delivery{Message: event})
					if got := told.list[i].Outcome; got != want[i] || verdict.Ack != (got != consume.Again) {
						t.Errorf("delivery %d is %s (%+v), want %s", attempt, got, verdict, want[i])
					}
				}
				reasons := map[consume.Unknown]string{
					consume.DeadLetterUnknown: "unknown_event_type unknown_event_type ", consume.RetryUnknown: consume.ReasonMaxDeliveries + " ",
				}
				var got strings.Builder
				for _, letter := range letters.Received() {
					got.WriteString(letter.Headers[consume.DeadReason] + " ")
				}
				if got.String() != reasons[unknown] {
					t.Errorf("dead letters for %q, want %q", got.String(), reasons[unknown])
				}
			})
		}
	}
}
