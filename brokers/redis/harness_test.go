package redis_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/brokers/redis/redistest"
)

// bench is a Redis, a file of effects, and consumer processes that are started on them.
type bench struct {
	t       *testing.T
	broker  *redistest.Broker
	effects string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, broker: redistest.New(t), effects: filepath.Join(t.TempDir(), "effects")}
	if err := os.WriteFile(b.effects, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// count counts the effects of an event: the second halves.
func (b *bench) count(event uuid.UUID) int {
	b.t.Helper()
	text, err := os.ReadFile(b.effects)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Count(string(text), event.String()+" "+secondHalf+"\n")
}

func (b *bench) want(event uuid.UUID, effects int) {
	b.t.Helper()
	if n := b.count(event); n != effects {
		b.t.Errorf("%d effects, want %d", n, effects)
	}
}

// running is a consumer process, seen from outside.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	words *bufio.Reader
}

// start starts a consumer process and waits until it is ready. It does not outlive the test.
func (b *bench) start(r role) *running {
	b.t.Helper()
	r.URL, r.Effects = b.broker.URL(), b.effects
	text, err := json.Marshal(r)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	input, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	c := &running{t: b.t, cmd: cmd, input: input, words: bufio.NewReader(output)}
	b.t.Cleanup(func() {
		c.kill()
		if b.t.Failed() && problems.Len() > 0 {
			b.t.Log(problems.String())
		}
	})
	c.await(ready)
	return c
}

// send delivers an event.
func (c *running) send(event uuid.UUID) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, event.String()+"\n"); err != nil {
		c.t.Fatalf("writing to the consumer: %v", err)
	}
}

// await fails unless this is the consumer's next word.
func (c *running) await(word string) {
	c.t.Helper()
	line, err := c.words.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != word {
		c.t.Fatalf("the consumer wrote %q, %v; want %q", line, err, word)
	}
}

// kill is kill -9, and reaps the process.
func (c *running) kill() {
	_ = c.cmd.Process.Kill() // fails only when it has ended
	_ = c.cmd.Wait()
}
