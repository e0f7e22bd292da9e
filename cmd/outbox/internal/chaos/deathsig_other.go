//go:build unix && !linux

package chaos

// Elsewhere only the cleanup of a test ends its processes.

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
