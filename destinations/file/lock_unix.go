//go:build unix && !aix && !solaris

package file

import (
	"os"
	"syscall"
)

// lock takes the file until it is closed, by whatever death.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
