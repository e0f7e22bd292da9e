//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns is the width of a screen, now: windows change their size.
func columns(screen any) int {
	file, ok := screen.(*os.File)
	if !ok {
		return usualColumns
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usualColumns
	}
	return int(size.Col)
}
