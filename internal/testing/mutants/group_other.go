//go:build !unix

package main

import "os/exec"

// interruptAll leaves the command as it is: here it is killed, and what it started is not told.
func interruptAll(*exec.Cmd) {}
