package dest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// pathOf is the path in file:PATH; file://PATH is taken, too.
func pathOf(to string) string {
	return strings.TrimPrefix(strings.TrimPrefix(to, "file:"), "//")
}

func checkPath(to string) error {
	if pathOf(to) == "" {
		return fmt.Errorf("destination %q has no path; it looks like file:events.jsonl", to)
	}
	return nil
}

func openLines(to string, _ io.Writer) (Destination, error) {
	file, err := openFile(pathOf(to))
	if err != nil {
		return nil, err
	}
	return newLines(file, file), nil
}

// openFile opens a file to append lines to, and takes it for this process alone: a write
// that fails is taken back by its length, which must not cut somebody else's line.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the destination: %w", err)
	}
	if err := lock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("open the destination %s: another process writes to it: %w", path, err), file.Close())
	}
	if err := cutHalfLine(file); err != nil {
		return nil, errors.Join(fmt.Errorf("open the destination %s: %w", path, err), file.Close())
	}
	return file, nil
}

// cutHalfLine removes what a killed process left of its last line. It was never
// acknowledged, so its event comes again; left there, it would spoil the next line.
func cutHalfLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	const step = 1 << 16
	buffer := make([]byte, step)
	for end := info.Size(); end > 0; {
		start := max(end-step, 0)
		chunk := buffer[:end-start]
		if _, err := file.ReadAt(chunk, start); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read its end: %w", err)
		}
		for i := len(chunk) - 1; i >= 0; i-- {
			if chunk[i] != '\n' {
				continue
			}
			if keep := start + int64(i) + 1; keep < info.Size() {
				return file.Truncate(keep)
			}
			return nil
		}
		end = start
	}
	return file.Truncate(0)
}
