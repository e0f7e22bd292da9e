package pgserver

// Linux can end a process together with its parent, which covers a keeper that is killed.

import "syscall"

// endWithParent makes the kernel send SIGQUIT, PostgreSQL's immediate shutdown, when the thread that starts the process
// ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
