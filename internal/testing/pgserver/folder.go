//go:build unix && !aix && !solaris

package pgserver

// The folder of a cluster: where it is, what is in it, and how it is thrown away.

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// formatVersion changes whenever processes built from different versions of this package must not share a cluster.
	formatVersion = "1"
	// maxSocketPath is the longest path of a Unix socket that all systems take (macOS has the smallest limit).
	maxSocketPath = 103
	// goneMark is in the names of folders that nobody uses any more, and that anybody may remove.
	goneMark = ".gone-"
)

// folder is the path of a cluster's folder.
type folder string

// usersLock is held shared by every user for as long as it lives. The keeper takes it exclusively to end the cluster.
func (f folder) usersLock() string { return filepath.Join(string(f), "users.lock") }

// keeperLock is the right to make, change and remove what is in the folder. A starter takes it and hands it to its
// keeper, which holds it for as long as it lives: a folder whose keeperLock is free has no keeper.
func (f folder) keeperLock() string { return filepath.Join(string(f), "keeper.lock") }

func (f folder) state() string     { return filepath.Join(string(f), "state.json") }
func (f folder) data() string      { return filepath.Join(string(f), "data") }
func (f folder) sockets() string   { return filepath.Join(string(f), "s") }
func (f folder) serverLog() string { return filepath.Join(string(f), "server.log") }
func (f folder) keeperLog() string { return filepath.Join(string(f), "keeper.log") }

func (f folder) socket(port int) string {
	return filepath.Join(f.sockets(), ".s.PGSQL."+strconv.Itoa(port))
}

// folderPrefix begins the name of every cluster folder of this user.
func folderPrefix() string { return "outbox-pg-" + strconv.Itoa(os.Geteuid()) + "-" }

// sharedName is the same for all processes that can use one cluster.
func sharedName(bin, settings string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{formatVersion, bin, settings}, "\x00")))
	return folderPrefix() + hex.EncodeToString(sum[:6])
}

func privateName() string { return folderPrefix() + "p" + strings.ToLower(rand.Text()[:11]) }

// parentFolder returns where cluster folders go: the temporary folder, unless the path of a socket in it would be too
// long or the server's user cannot enter it.
func parentFolder() string {
	temp := os.TempDir()
	longest := folder(filepath.Join(temp, privateName())).socket(65535)
	if filepath.IsAbs(temp) && len(longest) <= maxSocketPath && (os.Geteuid() != 0 || openToAll(temp)) {
		return temp
	}
	return "/tmp"
}

// openToAll tells whether any user can enter dir.
func openToAll(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// ensure makes the folder if it is not there, and refuses one that another user could have put in its place.
func (f folder) ensure() error {
	if err := os.Mkdir(string(f), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making cluster folder: %w", err)
	}
	if err := f.verify(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// The server runs as another user, which must get to its own folders inside, but need not list this one.
	if err := os.Chmod(string(f), 0o711); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("opening cluster folder: %w", err)
	}
	return nil
}

func (f folder) verify() error {
	info, err := os.Lstat(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy // removed since it was made or seen
	}
	if err != nil {
		return fmt.Errorf("examining cluster folder: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder that only this user can change", f)
	}
	return nil
}

// writeState makes the cluster known to other users. They see the whole state or none.
func (f folder) writeState(s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding cluster state: %w", err)
	}
	unfinished := f.state() + ".new"
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return fmt.Errorf("writing cluster state: %w", err)
	}
	if err := os.Rename(unfinished, f.state()); err != nil {
		return fmt.Errorf("publishing cluster state: %w", err)
	}
	return nil
}

// runningState returns the state of the cluster, if it is there and its server answers.
func (f folder) runningState() (state, bool) {
	var s state
	text, err := os.ReadFile(f.state())
	if err != nil || json.Unmarshal(text, &s) != nil {
		return state{}, false
	}
	return s, answers(f.socket(s.Port))
}

// answers tells whether somebody listens. It does not log in: a server that has all its connections in use answers.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// discard removes the folder. The caller holds keeperLock. The folder is renamed first, at one stroke: half removed, it
// must not be found under the name that others look for.
func (f folder) discard() error {
	gone := string(f) + goneMark + strings.ToLower(rand.Text()[:6])
	if err := os.Rename(string(f), gone); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("putting cluster folder aside: %w", err)
	}
	// The last processes of a killed server may still be writing, so that one pass can miss a file.
	var err error
	for range 50 {
		if err = os.RemoveAll(gone); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("removing cluster folder: %w", err)
}
