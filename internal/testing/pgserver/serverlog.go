//go:build unix && !aix && !solaris

package pgserver

// Reading logs: the server says only there why it did not start.

import (
	"bytes"
	"errors"
	"os"
	"strings"
)

// errPortTaken means that another process has the server's port.
var errPortTaken = errors.New("the port is taken")

// logsTakenPort tells whether what was logged after offset says that the server could not bind its port.
func logsTakenPort(path string, offset int64) bool {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) < offset {
		return false
	}
	return bytes.Contains(text[offset:], []byte("could not create any TCP/IP sockets"))
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tail returns the last lines of a log, in a form to append to an error; nothing when there are none.
func tail(name, path string) string {
	const most = 15
	text, err := os.ReadFile(path)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\nthe last lines of the " + name + " log:\n\t" + strings.Join(lines[max(0, len(lines)-most):], "\n\t")
}
