//go:build unix && !linux

package process

// Elsewhere only the cleanup of a test ends its processes.

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
