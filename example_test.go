package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

// screen is a publisher that prints. A real one waits for the broker's acknowledgement.
type screen struct{}

func (screen) Publish(_ context.Context, messages []outbox.Message) []error {
	for _, m := range messages {
		fmt.Printf("%s to %q: %s\n", m.Type, m.Topic, m.Payload)
	}
	return make([]error, len(messages))
}

// A relay delivers committed events; Drain returns when none is left. Run goes on until its context ends.
func ExampleRelay() {
	ctx := context.Background()
	pool, done, err := exampleTable()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	if err := emitExample(ctx, pool, outbox.Event{
		Type: "user.created", AggregateType: "User", AggregateID: "7", Payload: []byte(`{"email": "ada@example.com"}`),
	}); err != nil {
		fmt.Println(err)
		return
	}

	store, err := pgstore.New(pool, doorito.Layout(), pgstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: screen{}, DefaultTopic: "events", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(relay.Drain(ctx))
	// Output:
	// user.created to "events": {"email": "ada@example.com"}
	// <nil>
}

// UserCreated is a payload.
type UserCreated struct {
	Email string `json:"email"`
}

// deadLetters is a hook: it implements the hook interfaces that it is interested in.
type deadLetters struct{}

func (deadLetters) OnSettle(report outbox.BatchReport) {
	for i, outcome := range report.Outcomes {
		if outcome.Kind == outbox.Died {
			fmt.Printf("%s is dead (%s): %s\n", report.Messages[i].Type, outcome.Reason, outcome.Error)
		}
	}
}

// A registry gives every event type its topic and checks its payload. An unknown type is never published.
func ExampleRegistry() {
	ctx := context.Background()
	pool, done, err := exampleTable()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	registry := outbox.Registry{
		"user.created": {
			Topic: "accounts", AggregateType: "User",
			Decode: outbox.DecodeJSON(func(u UserCreated) error {
				if u.Email == "" {
					return errors.New("email is empty")
				}
				return nil
			}),
		},
	}
	for _, payload := range []string{`{"email": "ada@example.com"}`, `{"email": ""}`} {
		event := outbox.Event{Type: "user.created", AggregateType: "User", AggregateID: "7", Payload: []byte(payload)}
		if err := emitExample(ctx, pool, event); err != nil {
			fmt.Println(err)
			return
		}
	}
	store, err := pgstore.New(pool, doorito.Layout(), pgstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: screen{}, Registry: registry, Hooks: []any{deadLetters{}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(relay.Drain(ctx))
	// Output:
	// user.created to "accounts": {"email": "ada@example.com"}
	// user.created is dead (invalid_payload): the payload is not that of event type "user.created": email is empty
	// <nil>
}

// A publisher returns Terminal if no retry can help, and Unavailable if the message is not at fault.
func ExampleClassify() {
	refused := errors.New("message too large")
	for _, err := range []error{refused, outbox.Rejected(refused), outbox.Unavailable(errors.New("no route to host"))} {
		fmt.Println(map[outbox.Class]string{
			outbox.ClassRetryable: "try this one again", outbox.ClassTerminal: "dead at once", outbox.ClassUnavailable: "wait for the broker",
		}[outbox.Classify(err)])
	}
	// Output:
	// try this one again
	// dead at once
	// wait for the broker
}

// The delay doubles with every failed attempt, up to the maximum; half of it is jitter.
func ExampleRetryPolicy() {
	policy := outbox.RetryPolicy{Base: time.Second, Max: time.Minute}
	for _, attempts := range []int{1, 3, 100} {
		delay := policy.Delay(attempts)
		fmt.Println(delay >= policy.Base/2 && delay <= policy.Max)
	}
	// Output:
	// true
	// true
	// true
}

func emitExample(ctx context.Context, pool *pgxpool.Pool, event outbox.Event) error {
	emitter, err := outboxpgx.New(doorito.Layout(), outbox.EmitConfig{})
	if err != nil {
		return err
	}
	return emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := emitter.Emit(ctx, tx, event)
		return err
	})
}

func exampleTable() (*pgxpool.Pool, func(), error) {
	files, err := doorito.Migrations(doorito.Layout())
	if err != nil {
		return nil, nil, err
	}
	return pgtest.Example(`SELECT`, files)
}
