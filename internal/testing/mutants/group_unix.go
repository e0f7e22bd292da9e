//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// interruptAll makes the end of a command's context an interrupt, as from a terminal, for all
// processes that it started: to kill go test alone would leave its test running.
func interruptAll(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
}
