//go:build !linux

package testserver

import "syscall"

// endWithParent does nothing: elsewhere a server may outlive tests that are killed.
func endWithParent(*syscall.SysProcAttr) {}
