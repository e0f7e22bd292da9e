package file

import (
	"bytes"
	"fmt"

	"github.com/packfinderz/outbox"
)

func sizeOf(handle diskFile) (int64, error) {
	info, err := handle.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// untouched returns an error if somebody else has changed the file since our last write. A line appended to half a
// line of theirs cannot be read, and what they cut off was acknowledged.
func (f *disk) untouched() error {
	size, err := sizeOf(f.handle)
	switch {
	case err != nil:
		return fmt.Errorf("write to %s: %w", f.config.Path, err)
	case size == f.size:
		return nil
	case size < f.size:
		return outbox.Misconfigured(fmt.Errorf(
			"write to %s: somebody else has truncated it from %d to %d bytes, and with it events that were delivered; move it away, or restart the relay to go on with it",
			f.config.Path, f.size, size))
	case !f.config.Append:
		return outbox.Misconfigured(fmt.Errorf(
			"write to %s: somebody else has written to it; cut it to its first %d bytes, move it away, or restart the relay with ?append=true if all its lines have an end",
			f.config.Path, f.size))
	}
	last := make([]byte, 1)
	if _, err := f.handle.ReadAt(last, size-1); err != nil {
		return fmt.Errorf("read the end of %s: %w", f.config.Path, err)
	}
	if last[0] != '\n' {
		return outbox.Misconfigured(fmt.Errorf("write to %s: somebody else has written a line to it that has no end; end it", f.config.Path))
	}
	f.size = size
	return nil
}

// advance records lines that were written. If somebody else wrote at the same time, ours may follow half a line of
// theirs: then they are not acknowledged.
func (f *disk) advance(lines []byte) error {
	size, err := sizeOf(f.handle)
	if err != nil {
		return fmt.Errorf("write to %s: %w", f.config.Path, err)
	}
	end := f.size + int64(len(lines))
	if size != end {
		there := make([]byte, len(lines))
		if _, err := f.handle.ReadAt(there, f.size); err != nil || !bytes.Equal(there, lines) {
			return fmt.Errorf("write to %s: somebody else has written to it meanwhile", f.config.Path)
		}
		// They wrote behind ours; the next write sees it.
	}
	f.size = end
	return nil
}
