package consumetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// environment makes the test's program a consumer of the broker that it names.
const environment = "OUTBOX_TEST_CONSUMER"

// RunIfAsked is for TestMain: where the test's program was started by Killed, it consumes
// until it is killed, and does not return.
func RunIfAsked(open func(url string, handlers outbox.Publisher) (Consumer, error)) {
	url := os.Getenv(environment)
	if url == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the test's process does
		os.Exit(1)
	}()
	consumer, err := open(url, standing())
	if err == nil {
		err = consumer.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// standing handles the events of even aggregates, stands still at the others, and says so.
func standing() Handler {
	var mu sync.Mutex
	say := func(word string, m *outbox.Message) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(word, m.ID)
	}
	return func(_ context.Context, m outbox.Message) error {
		if strings.ContainsAny(m.AggregateID, "13579") {
			say("stands", &m)
			select {}
		}
		say("handled", &m)
		return nil
	}
}

// Killed publishes events and kills a consumer, a process of its own, when it stands at some of
// them. The next consumer is given those, and the ones that the first never began. It returns
// what the next one handled.
func Killed(t *testing.T, url string, stands int, h Harness) []outbox.Message {
	t.Helper()
	sent := Events(200, 10)
	h.Publish(t, "plain", sent)
	handled := killAt(t, url, stands)
	done := NewRecord()
	Start(t, h.Consumer(t, Options{Process: Quickly(Handler(done.Handle))}))
	return done.AwaitThat(t, func(list []outbox.Message) bool {
		counts := Counts(list)
		for i := range sent {
			if counts[sent[i].ID] == 0 && !handled[sent[i].ID] {
				return false
			}
		}
		return true
	})
}

// killAt runs a consumer until it stands at so many events, and returns those it had handled.
func killAt(t *testing.T, url string, stands int) map[uuid.UUID]bool {
	t.Helper()
	program := exec.Command(os.Args[0]) //nolint:gosec // the test itself
	program.Env = append(os.Environ(), environment+"="+url)
	if _, err := program.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	handled, stood := make(map[uuid.UUID]bool), 0
	for lines := bufio.NewScanner(output); lines.Scan(); {
		word, id, _ := strings.Cut(lines.Text(), " ")
		if word == "handled" {
			handled[uuid.MustParse(id)] = true
		} else if stood++; stood == stands {
			if err := program.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = program.Wait() // it was killed
	if stood < stands {
		t.Fatalf("the consumer ended by itself; it stood at %d events", stood)
	}
	return handled
}
