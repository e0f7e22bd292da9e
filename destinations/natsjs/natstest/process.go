package natstest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// The server runs in the test's own program, started a second time with this in its
// environment: there is nothing to install or to build, and it can be killed.
const environment = "OUTBOX_NATSTEST_SERVER"

type settings struct {
	Settings
	Folder string
	Port   int
}

func init() {
	text, is := os.LookupEnv(environment)
	if !is {
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a server until its standard input ends: when the test's process ends, however it
// does.
func serve(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	options := &server.Options{}
	if s.Config != "" {
		path := filepath.Join(s.Folder, "server.conf")
		if err := os.WriteFile(path, []byte(s.Config), 0o600); err != nil {
			return err
		}
		var err error
		if options, err = server.ProcessConfigFile(path); err != nil {
			return fmt.Errorf("read the configuration: %w", err)
		}
	}
	options.Host, options.Port = "127.0.0.1", s.Port
	options.JetStream, options.StoreDir = !s.NoJetStream, filepath.Join(s.Folder, "store")
	options.NoSigs, options.NoLog = true, true
	ns, err := server.NewServer(options)
	if err != nil {
		return err
	}
	ns.Start()
	if !ns.ReadyForConnections(startTimeout) {
		return errors.New("the server does not get ready; is its port taken?")
	}
	fmt.Println(ns.Addr().String())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

const startTimeout = 20 * time.Second

// process is a running server.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
}

// start runs a server and waits until it takes connections.
func start(s settings) (*process, int, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, 0, err
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), environment+"="+string(text))
	var complaints strings.Builder
	command.Stderr = &complaints
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, 0, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := command.Start(); err != nil {
		return nil, 0, err
	}
	p := &process{command: command, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = p.kill() // it has ended by itself
		return nil, 0, fmt.Errorf("%w: %s", err, complaints.String())
	}
	line = strings.TrimSpace(line)
	port, err := strconv.Atoi(line[strings.LastIndex(line, ":")+1:])
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("the server says %q", line), p.kill())
	}
	return p, port, nil
}

func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = p.stdin.Close()  // nobody reads it
	_ = p.command.Wait() // that it was killed is no news
	return nil
}

// freeze returns when the process has stopped: the signal alone takes its time, and the server
// would answer meanwhile.
func (p *process) freeze() error {
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.command.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return errors.New("the server has ended")
	}
	return nil
}

func (p *process) thaw() error { return p.command.Process.Signal(syscall.SIGCONT) }
