package testserver

import "syscall"

// endWithParent makes the kernel kill the process when the thread that starts it ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
