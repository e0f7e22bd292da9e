package outbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestDelay checks the policy against its formula for every number of attempts.
func TestDelay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := RetryPolicy{
			Base: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base")),
		}
		policy.Max = policy.Base + time.Duration(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "more"))
		attempts := rapid.OneOf(rapid.IntRange(0, 80), rapid.IntRange(0, math.MaxInt32)).Draw(t, "attempts")
		ceiling := policy.Max
		if shift := max(attempts, 1) - 1; shift < 62 && policy.Base <= policy.Max>>shift {
			ceiling = policy.Base << shift
		}
		if delay := policy.Delay(attempts); delay < ceiling/2 || delay > ceiling {
			t.Fatalf("after %d attempts %s, want between %s and %s", attempts, delay, ceiling/2, ceiling)
		}
	})
	policy := RetryPolicy{Base: time.Second, Max: 300 * time.Second}
	for _, attempts := range []int{0, 1, 2, 30, 62, 63, 64, 65, math.MaxInt32 - 1, math.MaxInt32} {
		if delay := policy.Delay(attempts); delay < policy.Base/2 || delay > policy.Max {
			t.Errorf("after %d attempts: %s", attempts, delay)
		}
	}
}

// TestDelaySpread draws the delay after some attempts 10,000 times: all lie between half of the ceiling and the
// ceiling, spread evenly. The bounds are eight standard deviations away, out of reach of chance.
func TestDelaySpread(t *testing.T) {
	t.Parallel()
	const draws, parts, least, most = 10_000, 10, 750, 1250
	policy := RetryPolicy{Base: time.Second, Max: 300 * time.Second}
	for attempts, delay := range map[int]time.Duration{1: time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 40: 300 * time.Second} {
		var shares [parts]int
		for range draws {
			drawn := policy.Delay(attempts)
			if drawn < delay/2 || drawn > delay {
				t.Fatalf("after %d attempts %s, want between %s and %s", attempts, drawn, delay/2, delay)
			}
			shares[min(int((drawn-delay/2)*parts/(delay/2)), parts-1)]++
		}
		for part, n := range shares {
			if n < least || n > most {
				t.Errorf("after %d attempts part %d of %d has %d of %d draws, want %d to %d", attempts, part+1, parts, n, draws, least, most)
			}
		}
	}
}

// TestIdlePollsAreSpread draws the pause of an idle relay many times: it is a little shorter than the poll interval
// and varies, so that relays that started together do not poll together forever.
func TestIdlePollsAreSpread(t *testing.T) {
	t.Parallel()
	const poll = 500 * time.Millisecond
	drawn := make(map[time.Duration]bool)
	for range 1000 {
		pause := idlePause(poll)
		if pause > poll || pause < poll*4/5 {
			t.Fatalf("the pause is %s, want between %s and %s", pause, poll*4/5, poll)
		}
		drawn[pause] = true
	}
	if len(drawn) < 100 {
		t.Errorf("of 1000 pauses only %d are different", len(drawn))
	}
}

// TestRetryAfter lets the destination ask for delays below and above the policy's own.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	relay := &Relay{config: RelayConfig{Retry: RetryPolicy{Base: time.Second, Max: time.Minute}}}
	refused := errors.New("too many requests")
	for _, c := range []struct {
		err         error
		least, most time.Duration
	}{
		{refused, time.Second / 2, time.Second},
		{RetryAfter(refused, time.Millisecond), time.Second / 2, time.Second},
		{RetryAfter(refused, -time.Hour), time.Second / 2, time.Second},
		{RetryAfter(refused, 10*time.Minute), 10 * time.Minute, 10 * time.Minute},
		{fmt.Errorf("wrapped: %w", RetryAfter(refused, time.Hour)), time.Hour, time.Hour},
		{RetryAfter(refused, math.MaxInt64), MaxRetryAfter, MaxRetryAfter},
	} {
		outcome := relay.failure(&Message{Event: Event{MaxAttempts: 3}, Attempt: 1}, c.err)
		if outcome.Kind != Failed || outcome.Delay < c.least || outcome.Delay > c.most {
			t.Errorf("%#v: %s after %s, want between %s and %s", c.err, outcome.Kind, outcome.Delay, c.least, c.most)
		}
	}
	if last := relay.failure(&Message{Event: Event{MaxAttempts: 1}, Attempt: 1}, RetryAfter(refused, time.Hour)); last.Kind != Died {
		t.Errorf("the last attempt is %s", last.Kind)
	}
	if RetryAfter(nil, time.Hour) != nil {
		t.Error("nil was made an error")
	}
	if dead := RetryAfter(Rejected(refused), time.Hour); Classify(dead) != ClassTerminal || !errors.Is(dead, refused) || dead.Error() != refused.Error() {
		t.Errorf("what it wraps is not found in %v", dead)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	ordinary := errors.New("the handler said no")
	for _, c := range []struct {
		err  error
		want Class
	}{
		{ordinary, ClassRetryable},
		{RetryAfter(ordinary, time.Second), ClassRetryable},
		// A timeout may be anybody's fault.
		{context.DeadlineExceeded, ClassUnclear},
		{fmt.Errorf("publish: %w", context.DeadlineExceeded), ClassUnclear},
		{os.ErrDeadlineExceeded, ClassUnclear},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, ClassUnclear},
		{Unclear(ordinary), ClassUnclear},
		// The publisher's own word wins.
		{Terminal(ordinary), ClassTerminal},
		{fmt.Errorf("wrapped: %w", Rejected(ordinary)), ClassTerminal},
		{Terminal(Unavailable(ordinary)), ClassTerminal},
		{Unavailable(ordinary), ClassUnavailable},
		{Unavailable(context.DeadlineExceeded), ClassUnavailable},
		{Misconfigured(ordinary), ClassUnavailable},
		{TopicUnavailable(ordinary), ClassUnavailable},
		{TopicMissing(Unclear(ordinary)), ClassUnavailable},
		// A failed connection. A dial that times out is not a slow message.
		{&net.OpError{Op: "dial", Err: errors.New("no route")}, ClassUnavailable},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, ClassUnavailable},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), ClassUnavailable},
		{syscall.EHOSTUNREACH, ClassUnavailable},
		{syscall.ENETUNREACH, ClassUnavailable},
		{&net.DNSError{Name: "broker", IsNotFound: true}, ClassUnavailable},
		{&net.DNSError{Name: "broker", IsTimeout: true}, ClassUnavailable},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, ClassUnavailable},
		{tls.RecordHeaderError{Msg: "not TLS"}, ClassUnavailable},
		// A broken connection.
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, ClassUnavailable},
		{syscall.ECONNABORTED, ClassUnavailable},
		{syscall.ETIMEDOUT, ClassUnavailable},
		{syscall.EPIPE, ClassUnavailable},
		{io.EOF, ClassUnavailable},
		{io.ErrUnexpectedEOF, ClassUnavailable},
		{net.ErrClosed, ClassUnavailable},
		// A disk that cannot be written.
		{&os.PathError{Op: "write", Path: "events", Err: syscall.ENOSPC}, ClassUnavailable},
		{syscall.EROFS, ClassUnavailable},
		{syscall.EIO, ClassUnavailable},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
	if Terminal(nil) != nil || Rejected(nil) != nil || Unavailable(nil) != nil || Misconfigured(nil) != nil || Unclear(nil) != nil {
		t.Error("nil was made an error")
	}
	if !errors.Is(Terminal(ordinary), ordinary) || !errors.Is(Unavailable(ordinary), ordinary) {
		t.Error("a wrapped error is not found")
	}
	if ReasonOf(Rejected(ordinary)) != ReasonRejected || ReasonOf(TooLarge(ordinary)) != ReasonTooLarge || ReasonOf(Terminal(ordinary)) != ReasonTerminal {
		t.Error("the reason is wrong")
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := string(rapid.SliceOf(rapid.Byte()).Draw(t, "error"))
		text := ErrorText(errors.New(raw))
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > maxErrorText {
			t.Fatalf("%q became %q", raw, text)
		}
		if utf8.ValidString(raw) && !strings.ContainsRune(raw, 0) && len(raw) <= maxErrorText && text != raw {
			t.Fatalf("%q became %q", raw, text)
		}
	})
	if n := utf8.RuneCountInString(ErrorText(errors.New(strings.Repeat("é", 5000)))); n != maxErrorText {
		t.Errorf("a long error has %d characters", n)
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	type order struct {
		OrderID string `json:"orderId"`
	}
	registry := Registry{
		"order_created": {Topic: "billing", AggregateType: "order", Decode: DecodeJSON(func(o order) error {
			if o.OrderID == "" {
				return errors.New("orderId is empty")
			}
			return nil
		})},
		"order_noted":  {Topic: "notes"},
		"order_cursed": {Topic: "notes", Decode: func([]byte) error { panic("cannot bear this payload") }},
		"order_looked_at": {Topic: "notes", Check: func(m *Message) error {
			switch m.AggregateType {
			case "nobody":
				return &TerminalError{Reason: ReasonInvalidRow, Err: errors.New("nobody")}
			case "other":
				return errors.New("other")
			case "cursed":
				panic("cannot bear this message")
			}
			return nil
		}},
	}
	message := func(eventType, aggregate, payload string) *Message {
		return &Message{Event: Event{Type: eventType, AggregateType: aggregate, AggregateID: "1", Payload: []byte(payload)}}
	}
	noAggregate := message("order_created", "order", `{"orderId":"1"}`)
	noAggregate.AggregateID = ""
	for _, c := range []struct {
		message *Message
		reason  Reason
		topic   string
	}{
		{message("order_created", "order", `{"orderId":"1"}`), "", "billing"},
		{message("order_noted", "", `{}`), "", "notes"},
		{message("order_noted", "anything", `{}`), "", "notes"},
		{message("order_noted", "", `null`), ReasonInvalidPayload, ""},
		{message("order_cursed", "", `{}`), ReasonInvalidPayload, ""},
		{message("order_looked_at", "order", `{}`), "", "notes"},
		{message("order_looked_at", "nobody", `{}`), ReasonInvalidRow, ""},
		{message("order_looked_at", "other", `{}`), ReasonInvalidPayload, ""},
		{message("order_looked_at", "cursed", `{}`), ReasonInvalidPayload, ""},
		{message("order_gone", "order", `{}`), ReasonUnknownType, ""},
		{message("", "order", `{}`), ReasonUnknownType, ""},
		{message("order_created", "store", `{"orderId":"1"}`), ReasonInvalidAggregate, ""},
		{message("order_created", "", `{"orderId":"1"}`), ReasonInvalidAggregate, ""},
		{noAggregate, ReasonInvalidAggregate, ""},
		{message("order_created", "order", `null`), ReasonInvalidPayload, ""},
		{message("order_created", "order", ` null `), ReasonInvalidPayload, ""},
		{message("order_created", "order", ``), ReasonInvalidPayload, ""},
		{message("order_created", "order", `{}`), ReasonInvalidPayload, ""},
		{message("order_created", "order", `{"orderId":1}`), ReasonInvalidPayload, ""},
		{message("order_created", "order", `{"orderId":"1","more":2}`), ReasonInvalidPayload, ""},
	} {
		err := registry.Check(c.message)
		if c.reason == "" {
			if err != nil || c.message.Topic != c.topic {
				t.Errorf("%s %s: %v, topic %q, want %q", c.message.Type, c.message.Payload, err, c.message.Topic, c.topic)
			}
			continue
		}
		if Classify(err) != ClassTerminal || ReasonOf(err) != c.reason {
			t.Errorf("%s %s: %v, want it dead for %s", c.message.Type, c.message.Payload, err, c.reason)
		}
	}
}
