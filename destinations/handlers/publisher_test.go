package handlers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSet(t testing.TB, options handlers.Config) *handlers.Publisher {
	t.Helper()
	set, err := handlers.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// register adds a handler for the type of the suite's messages.
func register(t testing.TB, set *handlers.Publisher, name string, call handlers.Func) {
	t.Helper()
	if err := set.Register("order_created", name, call); err != nil {
		t.Fatal(err)
	}
}

// harness runs the conformance suite.
type harness struct {
	set  *handlers.Publisher
	mu   sync.Mutex
	list []publishertest.Received
}

func (h *harness) Publisher() outbox.Publisher { return h.set }

func (h *harness) Received(testing.TB) []publishertest.Received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

func (h *harness) take(_ context.Context, m outbox.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if string(m.Payload) == "poison" {
		return errors.New("no")
	}
	attributes := make(map[string]string)
	for _, a := range wire.Attributes(&m) {
		attributes[a.Name] = a.Value
	}
	h.list = append(h.list, publishertest.Received{
		ID: m.ID, Payload: m.Payload, Topic: m.Topic, Key: m.Key, Attributes: attributes, ContentType: m.ContentType,
	})
	return nil
}

func TestSuite(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{Attributes: true, Keys: true, ContentType: true, Binary: true, Poison: func(m *outbox.Message) { m.Payload = []byte("poison") }}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		h := &harness{set: newSet(t, handlers.Config{})}
		register(t, h.set, "take", h.take)
		if err := h.set.Otherwise("take the rest", h.take); err != nil {
			t.Fatal(err)
		}
		return h
	})
}

// counter is a handler that fails as it is told, and counts.
type counter struct {
	mu    sync.Mutex
	calls int
	fail  error
}

func (c *counter) handle(context.Context, outbox.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	return c.fail
}

func attempt(t testing.TB, set *handlers.Publisher, message outbox.Message) error {
	t.Helper()
	return set.Publish(t.Context(), []outbox.Message{message})[0]
}

func wantCalls(t testing.TB, when string, want map[*counter]int) {
	t.Helper()
	for c, n := range want {
		if c.calls != n {
			t.Errorf("%s: a handler was called %d times, want %d", when, c.calls, n)
		}
	}
}

// wantClass fails unless err is of the class and has the words.
func wantClass(t testing.TB, what string, err error, class outbox.Class, words string) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error, want one of class %d with %q", what, class, words)
	}
	if outbox.Classify(err) != class || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v is of class %d, want %d with %q", what, err, outbox.Classify(err), class, words)
	}
}

// TestNeighbours has one of three handlers fail: the others are not called again.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	set := newSet(t, handlers.Config{})
	mail, stock, audit := &counter{}, &counter{fail: errors.New("none left")}, &counter{}
	register(t, set, "mail", mail.handle)
	register(t, set, "stock", stock.handle)
	register(t, set, "audit", audit.handle)
	message := publishertest.Messages(1)[0]
	for range 3 {
		err := attempt(t, set, message)
		wantClass(t, "failing", err, outbox.ClassRetryable, "handler stock: none left")
		if strings.Contains(err.Error(), "mail") {
			t.Errorf("a handler that is done is in %v", err)
		}
	}
	wantCalls(t, "while one fails", map[*counter]int{mail: 1, stock: 3, audit: 1})
	stock.fail = nil
	if err := attempt(t, set, message); err != nil {
		t.Error(err)
	}
	wantCalls(t, "delivered", map[*counter]int{mail: 1, stock: 4, audit: 1})
	// Delivered is forgotten: a replay is meant to be handled again.
	if err := attempt(t, set, message); err != nil {
		t.Error(err)
	}
	wantCalls(t, "replayed", map[*counter]int{mail: 2, stock: 5, audit: 2})
}

// TestTerminal has one handler give up while another may still succeed.
func TestTerminal(t *testing.T) {
	t.Parallel()
	set := newSet(t, handlers.Config{})
	never, later, fine := &counter{fail: outbox.Terminal(errors.New("never"))}, &counter{fail: errors.New("later")}, &counter{}
	register(t, set, "never", never.handle)
	register(t, set, "later", later.handle)
	register(t, set, "fine", fine.handle)
	message := publishertest.Messages(1)[0]
	for range 2 {
		wantClass(t, "while one may succeed", attempt(t, set, message), outbox.ClassRetryable, "handler never: never; handler later: later")
	}
	wantCalls(t, "while one may succeed", map[*counter]int{never: 1, later: 2, fine: 1})
	later.fail = nil
	wantClass(t, "all are through", attempt(t, set, message), outbox.ClassTerminal, "handler never: never")
	// A person retries it: only who gave up is asked again.
	never.fail = nil
	if err := attempt(t, set, message); err != nil {
		t.Error(err)
	}
	wantCalls(t, "retried", map[*counter]int{never: 2, later: 3, fine: 1})

	// The same when the attempts run out first.
	never.fail, later.fail = outbox.Terminal(errors.New("never")), errors.New("later")
	last := publishertest.Messages(1)[0]
	last.Attempt, last.MaxAttempts = 3, 3
	wantClass(t, "the last attempt", attempt(t, set, last), outbox.ClassRetryable, "handler later: later")
	never.fail, later.fail, last.Attempt = nil, nil, 1
	if err := attempt(t, set, last); err != nil {
		t.Error(err)
	}
	wantCalls(t, "retried after the last attempt", map[*counter]int{never: 4, later: 5, fine: 2})
}

// TestClasses has handlers answer with all kinds of errors.
func TestClasses(t *testing.T) {
	t.Parallel()
	ordinary := errors.New("no")
	for name, test := range map[string]struct {
		errs  []error
		class outbox.Class
		asked time.Duration
	}{
		"an ordinary error":                 {[]error{ordinary}, outbox.ClassRetryable, 0},
		"a connection of the handler's":     {[]error{fmt.Errorf("mail: %w", syscall.ECONNREFUSED)}, outbox.ClassRetryable, 0},
		"a deadline":                        {[]error{context.DeadlineExceeded}, outbox.ClassRetryable, 0},
		"an answer that is not a handler's": {[]error{outbox.ErrNotAttempted}, outbox.ClassRetryable, 0},
		"a nil pointer":                     {[]error{(*os.PathError)(nil)}, outbox.ClassRetryable, 0},
		"marked unavailable":                {[]error{outbox.Unavailable(ordinary)}, outbox.ClassUnavailable, 0},
		"unavailable beside a failure":      {[]error{outbox.Unavailable(ordinary), ordinary}, outbox.ClassRetryable, 0},
		"unavailable beside a dead one":     {[]error{outbox.Unavailable(ordinary), outbox.Terminal(ordinary)}, outbox.ClassUnavailable, 0},
		"asked to wait":                     {[]error{outbox.RetryAfter(ordinary, time.Hour), ordinary, outbox.RetryAfter(ordinary, time.Minute)}, outbox.ClassRetryable, time.Hour},
		"terminal":                          {[]error{outbox.Rejected(ordinary)}, outbox.ClassTerminal, 0},
	} {
		set := newSet(t, handlers.Config{})
		for i, err := range test.errs {
			register(t, set, fmt.Sprint("h", i), func(context.Context, outbox.Message) error { return err })
		}
		err := attempt(t, set, publishertest.Messages(1)[0])
		wantClass(t, name, err, test.class, "handler h0: ")
		if errors.Is(err, outbox.ErrNotAttempted) {
			t.Errorf("%s: %v would be given back uncounted", name, err)
		}
		var asked *outbox.RetryAfterError
		if errors.As(err, &asked) != (test.asked > 0) || asked != nil && asked.Delay != test.asked {
			t.Errorf("%s: %#v, want a delay of %s", name, err, test.asked)
		}
	}
}

// TestElsewhere has an inbox say that the event is being handled elsewhere. A consumer that could not see it
// would count it as a failure, and at last make it a dead letter.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	ordinary, held := errors.New("no"), fmt.Errorf("begin: %w", &inbox.InProgressError{Left: time.Minute})
	for name, test := range map[string]struct {
		errs []error
		seen bool
	}{
		"alone":             {[]error{held}, true},
		"beside a dead one": {[]error{held, outbox.Terminal(ordinary)}, true},
		"beside a failure":  {[]error{held, ordinary}, false},
	} {
		set := newSet(t, handlers.Config{})
		for i, err := range test.errs {
			register(t, set, fmt.Sprint("h", i), func(context.Context, outbox.Message) error { return err })
		}
		err := attempt(t, set, publishertest.Messages(1)[0])
		wantClass(t, name, err, outbox.ClassRetryable, "handler h0: begin: ")
		var seen *inbox.InProgressError
		if errors.As(err, &seen) != test.seen || test.seen && seen.Left != time.Minute {
			t.Errorf("%s: %#v, want it to be seen: %t", name, err, test.seen)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	message := publishertest.Messages(1)[0]
	err := attempt(t, newSet(t, handlers.Config{}), message)
	wantClass(t, "unknown", err, outbox.ClassTerminal, `no handler is registered for event type "order_created"`)
	if outbox.ReasonOf(err) != outbox.ReasonUnknownType {
		t.Errorf("the reason is %s", outbox.ReasonOf(err))
	}
	wantClass(t, "with RetryUnknown", attempt(t, newSet(t, handlers.Config{RetryUnknown: true}), message), outbox.ClassRetryable, "no handler")

	set := newSet(t, handlers.Config{})
	known, rest := &counter{}, &counter{}
	register(t, set, "known", known.handle)
	if err := set.Otherwise("rest", rest.handle); err != nil {
		t.Fatal(err)
	}
	other := message
	other.Type = "another"
	for _, m := range []outbox.Message{message, other} {
		if err := attempt(t, set, m); err != nil {
			t.Error(err)
		}
	}
	wantCalls(t, "with a catch-all", map[*counter]int{known: 1, rest: 1})
}

// TestPanic has handlers panic, and end their goroutine.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	set := newSet(t, handlers.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	fine := &counter{}
	register(t, set, "panics", func(context.Context, outbox.Message) error { panic("index out of range") })
	register(t, set, "fine", fine.handle)
	message := publishertest.Messages(1)[0]
	err := attempt(t, set, message)
	wantClass(t, "a panic", err, outbox.ClassRetryable, "handler panics: it panicked: index out of range")
	if strings.Contains(err.Error(), "goroutine") || !strings.Contains(log.String(), "publisher_test.go") || !strings.Contains(log.String(), message.ID.String()) {
		t.Errorf("the stack belongs in the log, not in %v: %s", err, log.String())
	}
	wantCalls(t, "beside a panic", map[*counter]int{fine: 1})

	gone := newSet(t, handlers.Config{})
	register(t, gone, "exits", func(context.Context, outbox.Message) error {
		runtime.Goexit()
		return nil
	})
	wantClass(t, "Goexit", attempt(t, gone, message), outbox.ClassRetryable, "without returning")
}

// TestCopies has a handler spoil what it was given.
func TestCopies(t *testing.T) {
	t.Parallel()
	set := newSet(t, handlers.Config{})
	register(t, set, "spoils", func(_ context.Context, m outbox.Message) error {
		clear(m.Payload)
		clear(m.Headers)
		return nil
	})
	messages := publishertest.Messages(1)
	before := fmt.Sprintf("%+v", messages)
	if err := set.Publish(t.Context(), messages)[0]; err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprintf("%+v", messages); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

func TestTyped(t *testing.T) {
	t.Parallel()
	type order struct {
		Order int `json:"order"`
	}
	set := newSet(t, handlers.Config{})
	var got []order
	err := handlers.Handle(set, "order_created", "typed", func(_ context.Context, o order, _ outbox.Message) error {
		got = append(got, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for payload, words := range map[string]string{
		`{"order": 7, "new": true}`: "", `null`: "the payload is null", ``: "the payload is null",
		`{"order": "x"}`: "the payload is no handlers_test.order", `{`: "the payload is no", `{} {}`: "the payload is no",
	} {
		message := publishertest.Messages(1)[0]
		message.Payload = []byte(payload)
		err := attempt(t, set, message)
		if words == "" {
			if err != nil || len(got) != 1 || got[0].Order != 7 {
				t.Errorf("%s: %v, %v", payload, err, got)
			}
			continue
		}
		wantClass(t, payload, err, outbox.ClassTerminal, words)
		if outbox.ReasonOf(err) != outbox.ReasonInvalidPayload {
			t.Errorf("%s: the reason is %s", payload, outbox.ReasonOf(err))
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	fine := (&counter{}).handle
	set := newSet(t, handlers.Config{})
	register(t, set, "a", fine)
	for words, err := range map[string]error{
		"has no event type":              set.Register("", "b", fine),
		"a handler has no name":          set.Register("order_created", "", fine),
		`handler "b" is nil`:             set.Register("order_created", "b", nil),
		`handler "c" is nil`:             handlers.Handle[int](set, "order_created", "c", nil),
		`there is a handler "a" already`: set.Register("order_created", "a", fine),
		"otherwise: a handler":           set.Otherwise("", fine),
	} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %s", err, words)
		}
	}
	if err := set.Register("another", "a", fine); err != nil {
		t.Error(err)
	}
	for _, options := range []handlers.Config{{Timeout: -1}, {Concurrency: -1}, {Remember: -1}} {
		if _, err := handlers.New(options); err == nil {
			t.Errorf("%+v was taken", options)
		}
	}
}
