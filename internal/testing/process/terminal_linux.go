package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// StartOnTerminal starts a program on a terminal of its own with so many columns. What would
// be on the screen, with the characters that move about on it, goes to the log. What is
// written to the keyboard is typed: "\x03" is Ctrl-C.
func StartOnTerminal(t testing.TB, log string, columns uint16, program string, args ...string) (p *Process, keyboard io.Writer) {
	t.Helper()
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	keys, screen, err := openTerminal(columns)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }() // the process has its own
	p = &Process{cmd: exec.Command(program, args...), log: log}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = screen, screen, screen
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // Ctrl-C goes to the terminal's session
	p.launch(t)
	exited, shown := p.exited, make(chan struct{})
	p.exited = shown
	go func() {
		defer close(shown)           // it has exited, and what it wrote is in the log
		_, _ = io.Copy(output, keys) // it ends with an error when nobody has the screen any more
		_, _ = output.Close(), keys.Close()
		<-exited
	}()
	return p, keys
}

// openTerminal makes a terminal: the end of the person and the end of the program.
func openTerminal(columns uint16) (keys, screen *os.File, err error) {
	keys, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = keys.Close()
		}
	}()
	var number, unlocked int32
	size := [4]uint16{24, columns}
	if err = ioctl(keys, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		return nil, nil, fmt.Errorf("asking for the terminal's number: %w", err)
	}
	if err = ioctl(keys, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked)); err != nil {
		return nil, nil, fmt.Errorf("unlocking terminal %d: %w", number, err)
	}
	if err = ioctl(keys, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		return nil, nil, fmt.Errorf("setting the size of terminal %d: %w", number, err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return keys, screen, err
}

// ioctl is that of golang.org/x/sys, which the root module does without.
func ioctl(terminal *os.File, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
