//go:build unix && !linux && !aix && !solaris

package pgserver

// Elsewhere a server outlives a keeper that is killed, until the next Start ends it (see sweep.go).

import "syscall"

func endWithParent(*syscall.SysProcAttr) {}
