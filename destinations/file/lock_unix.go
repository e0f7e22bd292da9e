//go:build unix && !aix && !solaris

package file

import (
	"os"
	"syscall"
)

// lock locks the file until it is closed, even by the death of the process.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
