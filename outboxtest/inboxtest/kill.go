package inboxtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Process is a consumer process, seen from outside.
type Process struct {
	t       testing.TB
	cmd     *exec.Cmd
	standAt string
	input   io.WriteCloser
	words   *bufio.Reader
}

// Start starts a consumer that plays a role and stands still at a point, if there is one, and
// waits until it is ready. It does not outlive the test.
func Start(t testing.TB, role any, standAt string) *Process {
	t.Helper()
	text, err := json.Marshal(role)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0]) //nolint:gosec // the test itself
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text), standEnv+"="+standAt)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, cmd: cmd, standAt: standAt, input: input, words: bufio.NewReader(output)}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() && problems.Len() > 0 {
			t.Log(problems.String())
		}
	})
	p.Await(Ready)
	return p
}

// Deliver sends an event.
func (p *Process) Deliver(event uuid.UUID) {
	p.t.Helper()
	p.send(event.String())
}

// GoOn wakes a consumer that stands still.
func (p *Process) GoOn() {
	p.t.Helper()
	p.send("go on")
}

func (p *Process) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		p.t.Fatalf("writing to the consumer: %v", err)
	}
}

// Await fails unless this is the consumer's next word.
func (p *Process) Await(word string) {
	p.t.Helper()
	line, err := p.words.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != word {
		p.t.Fatalf("the consumer wrote %q, %v; want %q", line, err, word)
	}
}

// AwaitEnd fails unless the consumer's next word is that it acked, or nacked, the event.
func (p *Process) AwaitEnd(how string, event uuid.UUID) {
	p.t.Helper()
	p.Await(how + " " + event.String())
}

// Kill is kill -9, and reaps the process.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended
	_ = p.cmd.Wait()
}

// DeliverAndKill has a consumer take an event to the point where it stands still, or else to
// its end, and kills it there.
func (p *Process) DeliverAndKill(event uuid.UUID) {
	p.t.Helper()
	p.Deliver(event)
	if p.standAt != "" {
		p.Await(p.standAt)
	} else {
		p.AwaitEnd(Acked, event)
	}
	p.Kill()
}

// KillAtRandom has consumers killed over and over, wherever they are, while events are
// delivered again until all are acknowledged. After each kill it tells which may have been
// delivered and are not acknowledged. It returns the events.
func KillAtRandom(t testing.TB, kills int, start func() *Process, killed func(unacknowledged []uuid.UUID)) []uuid.UUID {
	t.Helper()
	const window = 8 // deliveries that are not yet acknowledged
	var events []uuid.UUID
	for range window * kills {
		events = append(events, uuid.New())
	}
	waiting := events
	for range kills {
		p := start()
		for _, event := range waiting[:window] {
			p.Deliver(event)
		}
		delivered := waiting[:window]
		// It dies after some acknowledgements and a time that is about that of one more.
		for range rand.IntN(window - 2) { //nolint:gosec // a moment is no secret
			p.AwaitEnd(Acked, waiting[0])
			waiting, delivered = waiting[1:], delivered[1:]
		}
		// Nothing is waited for.
		<-time.After(time.Duration(rand.IntN(1500)) * time.Microsecond) //nolint:gosec // a moment is no secret
		p.Kill()
		killed(delivered)
	}
	p := start()
	for _, event := range waiting {
		p.Deliver(event)
		p.AwaitEnd(Acked, event)
	}
	return events
}
