package cli

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"
)

// errNoReader ends a relay to standard output.
var errNoReader = errors.New("standard output was closed: nobody reads the events any more")

// pipe is standard output. When its reader is gone, the relay is told to stop and releases what it holds; otherwise
// the next write would kill the process.
type pipe struct {
	io.Writer
	end context.CancelCauseFunc
}

func newPipe(out io.Writer, end context.CancelCauseFunc) *pipe {
	signal.Ignore(syscall.SIGPIPE) // the signal would come before the error
	return &pipe{out, end}
}

func (p *pipe) Write(lines []byte) (int, error) {
	n, err := p.Writer.Write(lines)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		p.end(errNoReader)
	}
	return n, err //nolint:wrapcheck // an io.Writer's own
}
