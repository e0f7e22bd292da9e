package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// bankError is an ordinary publisher's error whose methods panic on a nil pointer.
type bankError struct{ code int }

func (e *bankError) Error() string { return fmt.Sprint("bank: ", e.code) }
func (e *bankError) Unwrap() error { return fmt.Errorf("code %d", e.code) }

// hostileError panics in every method.
type hostileError struct{}

func (hostileError) Error() string { panic("no text") }
func (hostileError) Is(error) bool { panic("no comparison") }
func (hostileError) As(any) bool   { panic("no conversion") }

// TestBrokenErrors classifies errors that panic or are nil pointers: they are unclear, and their text says what is
// wrong.
func TestBrokenErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		class Class
		words string
	}{
		{(*bankError)(nil), ClassUnclear, "nil pointer of type *outbox.bankError"},
		{hostileError{}, ClassUnclear, "panics: no text"},
		{fmt.Errorf("pay: %w", hostileError{}), ClassUnclear, "no text"},
		{fmt.Errorf("pay: %w", (*bankError)(nil)), ClassUnclear, "pay: <nil>"},
		{(*UnavailableError)(nil), ClassUnclear, "nil pointer of type *outbox.UnavailableError"},
		{(*TerminalError)(nil), ClassUnclear, "nil pointer"},
		{(*RetryAfterError)(nil), ClassUnclear, "nil pointer"},
		{&UnavailableError{}, ClassUnavailable, "panics"},
		{&TerminalError{}, ClassTerminal, "panics"},
		{Terminal(&bankError{code: 7}), ClassTerminal, "bank: 7"},
		{errors.New("plain"), ClassRetryable, "plain"},
	} {
		if class := Classify(c.err); class != c.class {
			t.Errorf("%T is %s, want %s", c.err, class, c.class)
		}
		if text := ErrorText(c.err); !strings.Contains(text, c.words) {
			t.Errorf("the text of %T is %q, want %q", c.err, text, c.words)
		}
		// None of them panics.
		_, _, _, _, _, _ = isUntried(c.err), ofTopic(c.err), isProven(c.err), IsMisconfigured(c.err), ReasonOf(c.err), askedDelay(c.err)
	}
}
