package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// attempt parses the words of TestEvidence. An event is its key, a colon and the publisher's answer; the part of
// the key before a slash is its topic.
func (b *bench) attempt(words string) *attempt {
	b.Helper()
	a := &attempt{began: b.routes.begun()}
	events, beside := strings.CutPrefix(words, "beside ")
	if beside {
		a.began--
	}
	for event := range strings.FieldsSeq(events) {
		name, answer, _ := strings.Cut(event, ":")
		m := Message{Event: Event{ID: uuid.NewSHA1(uuid.Nil, []byte(name)), Key: name}}
		if topic, _, ok := strings.Cut(name, "/"); ok {
			m.Topic = topic
		}
		err, known := answers[answer]
		if !known {
			b.Fatalf("there is no answer %q", answer)
		}
		a.messages, a.errs = append(a.messages, m), append(a.errs, err)
	}
	return a
}

var errNo = errors.New("no")

var answers = map[string]error{
	"ok": nil, "refused": errNo, "never": Terminal(errNo), "404": Unclear(errNo), "404!": &UnclearError{Err: errNo, proven: true}, "404>": &UnclearError{Err: errNo, Overtaken: true}, "busy": Unavailable(errNo), "silent": context.DeadlineExceeded,
	"away": Unavailable(errNo), "missing": TopicMissing(errNo), "topicless": ErrNoTopic, "broken": Broken(fmt.Errorf("reset: %w", errNo)),
	"full": Unavailable(fmt.Errorf("disk: %w", syscall.ENOSPC)), "-": ErrNotAttempted,
}

// bench is a relay's routes without a relay.
type bench struct {
	*testing.T
	routes *routes
	now    time.Time
}

// ping lets the pauses of all closed routes pass and answers their pings with err.
func (b *bench) ping(err error) {
	b.Helper()
	b.now = b.now.Add(maxAsked)
	due, _ := b.routes.due(b.now)
	for _, topic := range due {
		b.routes.answered(topic, b.now, err)
	}
}

// faults returns who is to blame for each message of a batch, in one letter: - nobody, E the event, T the event
// (terminal), D the destination, t its topic.
func (b *bench) faults(events string) string {
	b.Helper()
	a := b.attempt(events)
	admitted := b.routes.admit()
	if admitted.wait != nil {
		b.Fatalf("nothing may be sent; wanted to send %s", events)
	}
	waits := b.routes.pick(a.messages, admitted.trial)
	for i, wait := range waits {
		switch wait {
		case waitClosed:
			a.errs[i] = errTopicClosed
		case waitTrial:
			a.errs[i] = errOnTrial
		case waitNot:
		}
	}
	findings, _ := b.routes.judge(a, b.now)
	var letters strings.Builder
	for _, f := range findings {
		letters.WriteByte("-ETDt"[f.fault])
	}
	return letters.String()
}

// closed returns the closed routes; "all" is the destination.
func (b *bench) closed() string {
	var names []string
	for _, status := range b.routes.list() {
		if !status.Open {
			name := status.Topic
			switch {
			case status.Topicless:
				name = "topicless"
			case name == "":
				name = "all"
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// oks returns delivered events of topic x.
func oks(n int) string { return strings.TrimSpace(strings.Repeat("x/7:ok ", n)) }

// TestTurns sends two suspects alone. One of them breaks the connection every time; the other must not always come
// after it.
func TestTurns(t *testing.T) {
	t.Parallel()
	b := &bench{T: t, routes: newRoutes(false, nil), now: time.Now()}
	b.faults("s:silent a:ok")
	b.faults("p:broken a:ok")
	both := b.attempt("p:ok s:ok a:ok").messages
	var order []int
	for range 4 {
		b.ping(nil)
		first := b.routes.alone(both)[0]
		order = append(order, first)
		b.faults([]string{"p:broken s:- a:ok", "s:silent p:- a:ok"}[first])
	}
	if want := []int{1, 0, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("the first are %v, want %v", order, want)
	}
}

// TestEvidence judges sequences of batches and checks, after each batch, who is at fault and which routes are
// closed. "ping" answers the pings of all closed routes; "beside" starts a batch while the one before is still
// under way.
func TestEvidence(t *testing.T) {
	t.Parallel()
	type step struct{ batch, faults, closed string }
	for name, story := range map[string][]step{
		"a refusal is the event's":                        {{"a:ok b:refused c:ok", "-E-", ""}},
		"a refusal alone, too":                            {{"a:refused", "E", ""}},
		"never is for good":                               {{"a:never b:ok", "T-", ""}},
		"away is the destination":                         {{"a:away b:away", "DD", "all"}},
		"what was delivered before it broke is delivered": {{"a:ok b:away c:away", "-DD", "all"}},
		"a refusal counts although the connection broke":  {{"a:refused b:away", "ED", "all"}},
		"a missing topic is its own fault": {
			{"x/1:missing y/1:ok x/2:missing", "t-t", "x"},
			{"x/3:ok y/2:ok", "--", "x"}, // x/3 was not sent
		},
		"a topic is tried with two events, then opened": {
			{"x/1:missing", "t", "x"},
			{"ping", "", "x"},
			{"x/1:ok x/2:ok x/3:ok", "---", ""},
		},
		"a topic that is still missing is closed again": {
			{"x/1:missing", "t", "x"},
			{"ping", "", "x"},
			{"x/1:missing x/2:missing x/3:missing y/1:ok", "tt--", "x"},
		},
		"an unclear answer is the event's the second time, when others got through in between": {
			{"a:ok b:404 c:ok", "-D-", ""}, {"d:ok", "-", ""},
			{"b:404", "E", ""},
		},
		"or when one got through that was sent after it": {
			{"b:404> c:ok", "D-", ""},
			{"b:404", "E", ""},
		},
		"at once when the publisher got through with others and failed again": {
			{"a:ok b:404! c:ok", "-E-", ""},
			{"b:404", "E", ""}, // it is remembered
			{"b:404", "E", ""},
		},
		"not when they got through in the same batches": { // they may have been delivered before the answer
			{"a:ok c:404", "-D", ""},
			{"c:404 d:ok", "D-", ""},
			{"c:404", "E", ""},
		},
		"not when they got through in a batch that was under way": {
			{"a:ok b:404", "-D", ""},
			{"beside c:ok", "-", ""},
			{"b:404", "D", ""},
		},
		"not when others get such answers for the first time": { // a destination that comes and goes
			{"a:404> b:404> c:ok", "DD-", ""},
			{"a:404> b:404> d:404> c:ok", "DDD-", ""},
			{"a:ok b:404", "-E", ""},
		},
		"not when nothing gets through in between": {
			{"a:ok b:404 c:404", "-DD", ""},
			{"b:404 c:404", "DD", "all"}, {"ping", "", "all"},
			{"b:404 c:404", "DD", "all"}, {"ping", "", "all"},
			{"b:404 c:404", "DD", "all"},
		},
		"not while it delivers": {
			{"a:ok b:404 c:404", "-DD", ""},
		},
		"unclear answers to several keys close the destination": {
			{"a:404 b:404 c:404", "DDD", "all"},
		},
		"unclear answers to one key close it the second time": {
			{"a:404", "D", ""},
			{"a:404", "D", "all"},
			{"ping", "", "all"},
			{"a:404", "D", "all"},
		},
		"a destination that takes others opens, and the event is at fault": {
			{"a:404 b:404", "DD", "all"}, {"ping", "", "all"},
			{"a:404 c:ok", "D-", ""},
			{"a:404", "E", ""},
		},
		"a trial is made with events that were in none that failed": {
			{"a:404 b:404 c:404", "DDD", "all"},
			{"ping", "", "all"},
			{"a:404 b:404 c:404 d:ok", "DD--", "all"}, // c and d wait
			{"ping", "", "all"},
			{"a:404 b:404 g:404 h:404 c:404 d:ok", "--DDD-", ""}, // a and b wait; there is room for four
		},
		"trials grow": {
			{"a:404 b:404", "DD", "all"}, {"ping", "", "all"},
			{"a:404 b:404 c:ok", "DD-", "all"}, {"ping", "", "all"},
			{"d:404 e:404 f:404 g:404 h:ok", "DDDD-", "all"}, {"ping", "", "all"},
			{"a:404 b:404 d:404 e:404 f:404 g:404 i:404 j:ok", "DDDDDDD-", ""},
		},
		"an event that was at fault before is so again when others got through since, and nobody else is": {
			{"a:404 b:ok", "D-", ""}, {"b:ok", "-", ""},
			{"a:404", "E", ""}, {"b:ok", "-", ""},
			{"a:404", "E", ""}, {"b:ok", "-", ""},
			{"a:404 b:404", "DD", "all"}, {"ping", "", "all"},
			{"c:ok", "-", ""},
			{"a:404", "E", ""},
		},
		"what it gets while nothing else gets through says nothing, about nobody": {
			{"a:404 b:ok", "D-", ""}, {"b:ok", "-", ""},
			{"a:404", "E", ""},
			{"a:404", "D", ""}, {"a:404", "D", ""}, {"a:404", "D", ""}, {"b:ok", "-", ""},
			{"a:404", "E", ""},
		},
		"an unclear answer is held against the topic": {
			{"x/1:404 x/2:404 y/1:ok", "tt-", "x"}, {"ping", "", "x"},
			{"x/3:404 x/4:404 y/2:ok", "tt-", "x"}, {"ping", "", "x"},
			{"x/1:ok x/2:ok y/2:ok", "---", ""},
		},
		"what other topics deliver proves nothing": {
			{"x/1:404 y/1:ok", "D-", ""}, {"y/2:ok", "-", ""},
			{"x/1:404 y/1:ok", "t-", "x"}, {"y/2:ok", "-", "x"}, {"ping", "", "x"},
			{"x/1:404 y/1:ok", "t-", "x"},
		},
		"what the topic delivers does": {
			{"x/1:404 y/1:ok", "D-", ""}, {"x/2:ok", "-", ""},
			{"x/1:404 y/1:ok", "E-", ""},
		},
		"where many are in doubt none is at fault": {
			{"x/1:404 x/2:404 x/3:404 x/4:404 x/5:ok", "DDDD-", ""}, {"x/6:ok", "-", ""},
			{"x/1:404", "D", ""}, {"x/6:ok", "-", ""},
			{"x/1:404 x/6:ok", "D-", ""}, {"x/6:ok", "-", ""},
			{"x/1:404 x/2:404 x/3:404 x/4:404 x/5:ok", "DDDD-", ""},
		},
		"until some of them were delivered, and many others in a row": {
			{"x/1:404 x/2:404 x/3:404 x/4:404 x/5:404 x/6:404 x/7:ok", "DDDDDD-", ""},
			{"x/4:ok x/5:ok x/6:ok " + oks(doubtedShare-3), strings.Repeat("-", doubtedShare), ""}, // six failed among them
			{"x/1:404 x/2:404 x/7:ok", "DD-", ""}, {oks(doubtedShare), strings.Repeat("-", doubtedShare), ""},
			{"x/1:404 x/2:404 x/3:404", "EEE", ""},
		},
		"or are few beside those that are delivered": {
			{"x/1:404 x/2:404 x/3:404 x/4:404 x/5:404 x/7:ok", "DDDDD-", ""},
			{oks(2*doubtedShare - 1), strings.Repeat("-", 2*doubtedShare-1), ""},
			{"x/1:404", "D", ""}, {"x/7:ok", "-", ""},
			{"x/1:404 x/2:404 x/3:404 x/4:404 x/5:404", "EEEEE", ""},
		},
		"events without a topic wait for one by themselves": {
			{"a:topicless b:topicless", "tt", "topicless"},
			{"c:ok x/1:ok", "--", "topicless"}, // c was not sent
			{"ping", "", "topicless"},
			{"a:topicless b:topicless c:ok x/2:ok", "tt--", "topicless"},
			{"ping", "", "topicless"},
			{"a:ok", "-", ""},
		},
		"who answers unclearly about a topic is there": {
			{"x/1:away", "D", "all"}, {"ping", "", "all"},
			{"x/1:404 x/2:404", "tt", "x"},
		},
		"silence after a good ping closes one topic only": {
			{"x/1:silent x/2:silent y/1:ok", "tt-", "x"},
		},
		"silence to one message while others of its topic get through is its own": {
			{"x/1:silent x/2:ok y/1:ok", "D--", ""}, {"x/3:ok", "-", ""},
			{"x/1:silent", "E", ""},
		},
		"silence without topics is held against the destination": {
			{"a:silent b:silent", "DD", "all"},
		},
		"nothing unclear counts beside a connection that broke": {
			{"a:404 b:away c:ok", "DD-", "all"},
		},
		"poison: three times, with good pings and others delivered": {
			{"p:broken a:ok", "D-", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:broken", "D", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:broken", "E", "all"},
		},
		"no poison when the destination is away the third time, for all that is known": {
			{"p:broken a:ok", "D-", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:broken", "D", "all"}, {"ping", "", "all"},
			{"p:broken", "D", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:broken", "E", "all"},
		},
		"no poison when nothing else is delivered": {
			{"p:broken", "D", "all"}, {"ping", "", "all"},
			{"p:broken", "D", "all"}, {"ping", "", "all"},
			{"p:broken", "D", "all"}, {"ping", "", "all"},
			{"p:broken", "D", "all"},
		},
		"who says that he is busy is not broken, and is there for others": {
			{"p:busy a:ok", "D-", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:busy", "D", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:busy a:ok", "D-", ""}, {"b:ok", "-", ""},
			{"p:busy a:ok", "D-", ""},
			{"p:busy c:busy", "DD", "all"},
		},
		"a full disk is never poison": {
			{"p:full a:ok", "D-", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:full", "D", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:full", "D", "all"}, {"ping", "", "all"}, {"b:ok", "-", ""},
			{"p:full", "D", "all"},
		},
		"a trial of which nothing was sent finds nothing out": {
			{"a:away", "D", "all"}, {"ping", "", "all"},
			{"a:-", "-", "all"},
			{"a:ok", "-", ""},
		},
		"a destination that has nothing to be tried with opens by itself": {
			{"a:away", "D", "all"}, {"ping", "", "all"}, {"ping", "", ""},
		},
		"who refuses is there": {
			{"a:away", "D", "all"}, {"ping", "", "all"},
			{"a:refused", "E", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{T: t, routes: newRoutes(false, nil), now: time.Now()}
			for i, s := range story {
				if s.batch == "ping" {
					b.ping(nil)
				} else if got := b.faults(s.batch); got != s.faults {
					t.Fatalf("step %d, %s: the faults are %s, want %s", i+1, s.batch, got, s.faults)
				}
				if got := b.closed(); got != s.closed {
					t.Fatalf("step %d, %s: closed is %q, want %q", i+1, s.batch, got, s.closed)
				}
			}
		})
	}
}
