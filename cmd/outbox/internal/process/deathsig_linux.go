package process

// Linux can end a process together with its parent, which covers a test that is killed or panics.

import "syscall"

func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
