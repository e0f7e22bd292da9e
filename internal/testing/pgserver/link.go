//go:build unix && !aix && !solaris

package pgserver

// The user's side of a keeper: starting its process, and talking to it over two pipes, commands in and answers out,
// one line each. Pipes need no address and no login, and their end tells of the other side's death.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// keeperEnv holds the keeperRequest in the environment of a keeper process.
const keeperEnv = "OUTBOX_PGSERVER_KEEPER"

// Files of a keeper process besides the usual three, of which stdin has the commands.
const (
	answersFD    = 3
	keeperLockFD = 4
)

// keeperRequest is what a keeper is started for.
type keeperRequest struct {
	Folder   folder
	Bin      string
	Settings map[string]string
	Grace    time.Duration
	// Primary is the address of the server to copy, and Password that of its superuser; empty for a new cluster. Follow is
	// set for a standby of it.
	Primary, Password string
	Follow            bool
}

// answer is what a keeper says when the server is up, and after every command.
type answer struct {
	State state
	Error string
}

// errKeeperEnded means that the keeper's process is no more.
var errKeeperEnded = errors.New("the keeper process has ended (programs must call RunKeeperIfAsked first in main)")

// keeperLink is one user's connection to its keeper.
type keeperLink struct {
	process  *os.Process
	commands *os.File
	answers  *os.File
	unread   []byte
	owed     int // answers to come: more than one when a caller gave up on an earlier command
}

// startKeeper starts the keeper, handing it the lock that shows that it lives. The keeper gets a session of its own,
// so that an interrupt meant for its user does not end it before the user has, and none of the user's output, which
// whoever reads it (go test does) would wait for.
func startKeeper(request keeperRequest, keeperLock *os.File) (*keeperLink, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	encoded, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the keeper's request: %w", err)
	}
	output, err := os.OpenFile(request.Folder.keeperLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the keeper's log: %w", err)
	}
	defer closeQuietly(output)
	commandsIn, commandsOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the keeper's pipe: %w", err)
	}
	defer closeQuietly(commandsIn)
	answersIn, answersOut, err := os.Pipe()
	if err != nil {
		closeQuietly(commandsOut)
		return nil, fmt.Errorf("making the keeper's pipe: %w", err)
	}
	defer closeQuietly(answersOut)

	cmd := exec.Cmd{
		Path:        program,
		Args:        []string{"outbox-pg-keeper", string(request.Folder)},
		Env:         append(serverEnvironment(), keeperEnv+"="+string(encoded)),
		Dir:         "/",
		Stdin:       commandsIn,
		Stdout:      output,
		Stderr:      output,
		ExtraFiles:  []*os.File{answersFD - 3: answersOut, keeperLockFD - 3: keeperLock},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		closeQuietly(commandsOut)
		closeQuietly(answersIn)
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	return &keeperLink{process: cmd.Process, commands: commandsOut, answers: answersIn, owed: 1}, nil
}

// serverEnvironment is ours without the variables that PostgreSQL's programs and clients take options from, and in
// the C locale, in which the server's messages are known.
func serverEnvironment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_ALL=") {
			env = append(env, variable)
		}
	}
	return append(env, "LC_ALL=C")
}

// command sends a command and waits for its answer.
func (l *keeperLink) command(ctx context.Context, command string) error {
	if _, err := l.commands.WriteString(command + "\n"); err != nil {
		return fmt.Errorf("%w: %w", errKeeperEnded, err)
	}
	l.owed++
	_, err := l.next(ctx)
	return err
}

// next waits for all answers that are owed, and returns the last one.
func (l *keeperLink) next(ctx context.Context) (answer, error) {
	var last answer
	for l.owed > 0 {
		line, err := l.readLine(ctx)
		if err != nil {
			return answer{}, err
		}
		l.owed--
		last = answer{}
		if err := json.Unmarshal(line, &last); err != nil {
			return answer{}, fmt.Errorf("decoding the keeper's answer: %w", err)
		}
	}
	if last.Error != "" {
		return answer{}, errors.New(last.Error)
	}
	return last, nil
}

// readLine reads in short turns, so that it can heed ctx without a goroutine, and lose nothing when it does.
func (l *keeperLink) readLine(ctx context.Context) ([]byte, error) {
	for {
		if line, rest, found := bytes.Cut(l.unread, []byte("\n")); found {
			l.unread = rest
			return line, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := l.answers.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			return nil, fmt.Errorf("reading from the keeper: %w", err)
		}
		var part [4096]byte
		n, err := l.answers.Read(part[:])
		l.unread = append(l.unread, part[:n]...)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, errKeeperEnded
		}
	}
}

// awaitEnd ends the link, waits until the keeper's process has ended, and reaps it.
func (l *keeperLink) awaitEnd(ctx context.Context) error {
	closeQuietly(l.commands)
	defer closeQuietly(l.answers)
	for {
		if _, err := l.readLine(ctx); errors.Is(err, errKeeperEnded) {
			break
		} else if err != nil {
			_ = l.process.Release()
			return err
		}
	}
	if _, err := l.process.Wait(); err != nil {
		return fmt.Errorf("reaping the keeper: %w", err)
	}
	return nil
}

// close ends the link and leaves the keeper to itself.
func (l *keeperLink) close() {
	closeQuietly(l.commands)
	closeQuietly(l.answers)
	_ = l.process.Release()
}

// closeQuietly is for files whose closing has no error worth knowing: pipes, and logs that others write.
func closeQuietly(file *os.File) { _ = file.Close() }
