package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// lineStart is how each of our lines begins.
const lineStart = `{"id":"`

// tidy removes what a killed process left of its last line. That line was never acknowledged, so its event comes
// again; left there, it would spoil the next line. Lines of others are not touched.
func (f *disk) tidy(handle *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	start, line, err := lastLine(handle, size)
	if err != nil {
		return fmt.Errorf("read its end: %w", err)
	}
	ours := bytes.HasPrefix(line, []byte(lineStart)) || bytes.HasPrefix([]byte(lineStart), line)
	switch whole := bytes.HasSuffix(line, []byte("\n")); {
	case !ours && !whole:
		return errors.New("its last line has no end and is not one of ours; end it, or choose another file")
	case !ours && !f.config.Append:
		return errors.New("somebody else has written to it; choose another file, or append to it all the same with ?append=true")
	case !whole:
		return handle.Truncate(start)
	}
	return nil
}

// lastLine returns where the last line of a file begins, and how it begins. A line that has an end keeps it.
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
