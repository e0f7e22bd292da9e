package file

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/packfinderz/outbox"
)

// disk is the file that lines are appended to. It follows its path: if the file there is no longer the open one,
// because it was moved or deleted, it opens the new one.
type disk struct {
	config Config
	handle diskFile // nil if it must be opened
	// size is the file's length after our last write. If it differs, somebody else has written to it.
	size int64
}

// diskFile is the part of os.File that is used.
type diskFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// open opens the file and locks it for this process: a failed write is undone by truncating the file, which must
// not cut somebody else's line.
func (f *disk) open() error {
	handle, err := os.OpenFile(f.config.Path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil && outbox.Classify(err) == outbox.ClassUnavailable { // a full disk may pass
		return fmt.Errorf("open the destination: %w", err)
	} else if err != nil {
		return outbox.Misconfigured(fmt.Errorf("open the destination: %w", err))
	}
	if err := f.claim(handle); err != nil {
		return errors.Join(outbox.Misconfigured(fmt.Errorf("open the destination %s: %w", f.config.Path, err)), handle.Close())
	}
	f.handle = handle
	if f.size, err = sizeOf(handle); err != nil {
		f.forget()
		return fmt.Errorf("open the destination %s: %w", f.config.Path, err)
	}
	return nil
}

// claim takes over an opened file.
func (f *disk) claim(handle *os.File) error {
	info, err := handle.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is a pipe or a device, which keeps nothing; the destination stdout: writes to other processes")
	}
	if err := lock(handle); err != nil {
		return fmt.Errorf("another process writes to it: %w", err)
	}
	return f.tidy(handle, info.Size())
}

// Write appends lines and returns when they are on disk, in the file at the path. If that fails, none of them is
// left.
func (f *disk) Write(lines []byte) (int, error) {
	if len(lines) == 0 {
		return 0, nil
	}
	if err := f.follow(); err != nil {
		return 0, err
	}
	_, err := f.handle.Write(lines)
	if err == nil {
		err = f.handle.Sync()
	}
	if err != nil {
		// Half a line would spoil the next one.
		if truncateErr := f.handle.Truncate(f.size); truncateErr != nil {
			err = fmt.Errorf("%w; and half a line is left: %w", err, truncateErr)
			f.forget() // the next open removes the half line
		}
		return 0, fmt.Errorf("write to %s: %w", f.config.Path, err)
	}
	if !f.isThere() {
		return 0, fmt.Errorf("write to %s: it was moved or deleted meanwhile", f.config.Path)
	}
	if err := f.advance(lines); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// follow reopens the file if another one is at its path, and checks that nobody else has changed it.
func (f *disk) follow() error {
	if f.handle != nil && f.isThere() {
		return f.untouched()
	}
	f.forget()
	return f.open()
}

// forget closes the file; the next write opens it again.
func (f *disk) forget() { _ = f.Close() } // all that was acknowledged is on disk

// isThere reports whether the open file is the one at its path.
func (f *disk) isThere() bool {
	open, err := f.handle.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.config.Path)
	return err == nil && os.SameFile(open, there)
}

// Close closes the file. Closing it again is a no-op.
func (f *disk) Close() error {
	if f.handle == nil {
		return nil
	}
	handle := f.handle
	f.handle = nil
	if err := handle.Close(); err != nil {
		return fmt.Errorf("close the destination: %w", err)
	}
	return nil
}
