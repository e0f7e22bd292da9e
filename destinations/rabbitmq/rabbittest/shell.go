package rabbittest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// shell is the Erlang shell of a node. What rabbitmqctl does in seconds, it does in milliseconds.
type shell struct {
	mu      sync.Mutex
	input   io.Writer
	answers chan string
	count   int
}

func newShell(input io.Writer, output io.Reader) *shell {
	s := &shell{input: input, answers: make(chan string)}
	go s.read(output)
	return s
}

// read passes answers on until the node ends.
func (s *shell) read(output io.Reader) {
	defer close(s.answers)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if answer, found := strings.CutPrefix(lines.Text(), "<answer "); found {
			s.answers <- answer
		}
	}
}

// eval runs an expression whose value must be ok.
func (s *shell) eval(expression string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if _, err := fmt.Fprintf(s.input, "io:format(\"~n<answer %d ~0p>~n\", [catch (%s)]).\n", s.count, expression); err != nil {
		return fmt.Errorf("asking the node: %w", err)
	}
	answer, more := <-s.answers
	if !more {
		return errors.New("the node has ended")
	}
	if want := fmt.Sprintf("%d ok>", s.count); answer != want {
		return fmt.Errorf("%s: the node answered %q", expression, answer)
	}
	return nil
}
