//go:build unix && !aix && !solaris

package pgserver

// The keeper: the process that owns a cluster from initdb to the removal of its folder. It ends the cluster when no
// user has been there for the grace time, when the server dies by itself, or when it is told to end by a signal. If it
// is killed, Linux ends the server (see deathsig_linux.go), and the next Start clears the folder (see sweep.go).

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// watchInterval is how often the keeper looks for users.
const watchInterval = 500 * time.Millisecond

type keeper struct {
	request  keeperRequest
	cluster  *cluster
	answers  *os.File
	lastUsed time.Time
}

// RunKeeperIfAsked turns a process that Start has started as a keeper into one, and never returns in it. In all other
// processes it returns at once. Programs that use this package call it first in main or TestMain.
func RunKeeperIfAsked() {
	encoded := os.Getenv(keeperEnv)
	if encoded == "" {
		return
	}
	if err := runKeeper(encoded); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runKeeper(encoded string) error {
	// The kernel ties the server's death signal to the thread that started it, so that this one must stay.
	runtime.LockOSThread()
	// The server must inherit neither the request nor these files: the lock would outlive the keeper in it. The lock's
	// file is never used, only held open.
	syscall.CloseOnExec(answersFD)
	syscall.CloseOnExec(keeperLockFD)
	if err := os.Unsetenv(keeperEnv); err != nil {
		return fmt.Errorf("clearing the environment: %w", err)
	}
	k := &keeper{answers: os.NewFile(answersFD, "answers")}
	if err := json.Unmarshal([]byte(encoded), &k.request); err != nil {
		return fmt.Errorf("decoding the request: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	if err := k.create(ctx); err != nil {
		k.answer(err)
	} else {
		k.answer(nil)
		k.watch(ctx)
	}
	k.cluster.halt(Fast)
	return k.request.Folder.discard()
}

func (k *keeper) create(ctx context.Context) error {
	k.cluster = &cluster{
		folder: k.request.Folder, bin: k.request.Bin,
		primary: k.request.Primary, follow: k.request.Follow, password: k.request.Password,
	}
	if err := k.cluster.create(ctx, k.request.Settings); err != nil {
		return err
	}
	return k.request.Folder.writeState(k.state())
}

func (k *keeper) state() state {
	return state{
		KeeperPID: os.Getpid(),
		Port:      k.cluster.port,
		SocketDir: k.request.Folder.sockets(),
		Password:  k.cluster.password,
	}
}

// answer tells the user how it went. A user that is gone is no error: the cluster may have others.
func (k *keeper) answer(err error) {
	a := answer{State: k.state()}
	if err != nil {
		a.Error = err.Error()
	}
	line, err := json.Marshal(a)
	if err != nil {
		return
	}
	_, _ = k.answers.Write(append(line, '\n'))
}

// watch returns when the cluster shall end.
func (k *keeper) watch(ctx context.Context) {
	k.lastUsed = time.Now()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	commands := readCommands()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.cluster.ended():
			return
		case command, more := <-commands:
			if more {
				k.answer(k.obey(ctx, command))
				continue
			}
			commands = nil // the user that started us is gone, perhaps the only one
		case <-ticker.C:
		}
		if k.unused() {
			return
		}
	}
}

// readCommands returns the commands as they come, and closes the channel at their end.
func readCommands() <-chan string {
	commands := make(chan string)
	go func() {
		defer close(commands)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	return commands
}

func (k *keeper) obey(ctx context.Context, command string) error {
	verb, mode, _ := strings.Cut(command, " ")
	switch {
	case verb == "resume":
		return k.cluster.resume(ctx)
	case verb == "halt" && (Mode(mode) == Fast || Mode(mode) == Immediate):
		k.cluster.halt(Mode(mode))
		return nil
	default:
		return fmt.Errorf("unknown command or mode: %q", command)
	}
}

// unused tells whether nobody has used the cluster for the grace time. If so it keeps usersLock to the end, and nobody
// can attach any more.
func (k *keeper) unused() bool {
	if _, err := os.Lstat(string(k.request.Folder)); errors.Is(err, fs.ErrNotExist) {
		return true // somebody removed the folder: the server cannot work any more
	}
	users, err := tryLock(k.request.Folder.usersLock(), exclusiveLock)
	if err != nil {
		k.lastUsed = time.Now()
		return false
	}
	if time.Since(k.lastUsed) < k.request.Grace {
		users.release()
		return false
	}
	return true
}
