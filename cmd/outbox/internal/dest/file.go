package dest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/packfinderz/outbox"
)

// filePath is what a URL, file:PATH or file:PATH?append=true, names. file://PATH is taken, too.
type filePath struct {
	path string
	// foreign allows to append to a file that somebody else has written.
	foreign bool
}

func parsePath(to string) (filePath, error) {
	path, options, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(to, "file:"), "//"), "?")
	if path == "" {
		return filePath{}, fmt.Errorf("destination %q has no path; it looks like file:events.jsonl", to)
	}
	f := filePath{path: path}
	values, err := url.ParseQuery(options)
	if err != nil {
		return f, fmt.Errorf("destination %q: the options cannot be read: %w", to, err)
	}
	for name, value := range values {
		if name != "append" || len(value) != 1 || value[0] != "true" && value[0] != "false" {
			return f, fmt.Errorf("destination %q: the only option is append=true", to)
		}
		f.foreign = value[0] == "true"
	}
	return f, nil
}

func checkPath(to string) error {
	_, err := parsePath(to)
	return err
}

func prepareLines(to string, _ io.Writer) (Destination, error) {
	place, err := parsePath(to)
	if err != nil {
		return nil, err
	}
	return newLines(&file{filePath: place}), nil
}

// file is a file to append lines to. It follows its path: when the file there is no longer the
// one that is open, because it was moved or deleted, it opens the new one.
type file struct {
	filePath
	handle diskFile // nil when it has to be opened
	// size is how long we left the file. If it has another, somebody else has written to it.
	size int64
}

// diskFile is what is used of an os.File.
type diskFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// open opens the file, and takes it for this process alone: a write that fails is taken back by
// its length, which must not cut somebody else's line.
func (f *file) open() error {
	handle, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil && outbox.Classify(err) == outbox.ClassUnavailable { // a full disk mends itself
		return fmt.Errorf("open the destination: %w", err)
	} else if err != nil {
		return outbox.Misconfigured(fmt.Errorf("open the destination: %w", err))
	}
	if err := f.claim(handle); err != nil {
		return errors.Join(outbox.Misconfigured(fmt.Errorf("open the destination %s: %w", f.path, err)), handle.Close())
	}
	f.handle = handle
	if f.size, err = sizeOf(handle); err != nil {
		f.forget()
		return fmt.Errorf("open the destination %s: %w", f.path, err)
	}
	return nil
}

// claim makes a file that was opened ours.
func (f *file) claim(handle *os.File) error {
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
	return f.tidy(handle)
}

// lineStart is what every line of ours begins with.
const lineStart = `{"id":"`

// tidy removes what a killed process left of its last line. It was never acknowledged, so its
// event comes again; left there, it would spoil the next line. What is not ours is not touched.
func (f *file) tidy(handle *os.File) error {
	info, err := handle.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	start, line, err := lastLine(handle, info.Size())
	if err != nil {
		return fmt.Errorf("read its end: %w", err)
	}
	ours := bytes.HasPrefix(line, []byte(lineStart)) || bytes.HasPrefix([]byte(lineStart), line)
	switch whole := bytes.HasSuffix(line, []byte("\n")); {
	case !ours && !whole:
		return errors.New("its last line has no end and is not one of ours; end it, or choose another file")
	case !ours && !f.foreign:
		return errors.New("somebody else has written to it; choose another file, or append to it all the same with ?append=true")
	case !whole:
		return handle.Truncate(start)
	}
	return nil
}

// lastLine is where the last line of a file begins, and its beginning; with its end, if it has
// one and is short.
func lastLine(handle *os.File, size int64) (start int64, line []byte, err error) {
	const step = 1 << 16
	buffer := make([]byte, step)
	end := size
	// The line's own end does not begin the next one.
	if _, err := handle.ReadAt(buffer[:1], size-1); err != nil {
		return 0, nil, err
	}
	ended := buffer[0] == '\n'
	if ended {
		end--
	}
	for at := end; at > 0; {
		from := max(at-step, 0)
		if _, err := handle.ReadAt(buffer[:at-from], from); err != nil && !errors.Is(err, io.EOF) {
			return 0, nil, err
		}
		if i := bytes.LastIndexByte(buffer[:at-from], '\n'); i >= 0 {
			start = from + int64(i) + 1
			break
		}
		at = from
	}
	line = make([]byte, min(end-start, int64(len(lineStart))))
	if _, err := handle.ReadAt(line, start); err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	if ended {
		line = append(line, '\n')
	}
	return start, line, nil
}

// Write appends lines and returns when they are on disk, in the file that is at the path. If
// that fails nothing of them is left.
func (f *file) Write(lines []byte) (int, error) {
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
			f.forget() // whoever opens it removes the half line
		}
		return 0, fmt.Errorf("write to %s: %w", f.path, err)
	}
	if !f.isThere() {
		return 0, fmt.Errorf("write to %s: it was moved or deleted meanwhile", f.path)
	}
	if err := f.advance(lines); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// follow opens the file anew when the one at its path is another, and sees that it is as we left it.
func (f *file) follow() error {
	if f.handle != nil && f.isThere() {
		return f.untouched()
	}
	f.forget()
	return f.open()
}

// forget closes the file, so that it is opened anew.
func (f *file) forget() {
	if f.handle != nil {
		_ = f.handle.Close() // all that was acknowledged is on disk
		f.handle = nil
	}
}

// isThere reports whether the file that is open is the one at its path.
func (f *file) isThere() bool {
	open, err := f.handle.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.path)
	return err == nil && os.SameFile(open, there)
}

// Close closes the file.
func (f *file) Close() error {
	if f.handle == nil {
		return nil
	}
	if err := f.handle.Close(); err != nil {
		return fmt.Errorf("close the destination: %w", err)
	}
	return nil
}
