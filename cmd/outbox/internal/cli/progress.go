package cli

import (
	"fmt"
	"os"
	"strings"
)

// bar draws the progress of something that takes long, if there is somebody to see it. count
// says how much there is to do; end is called in the end.
func (a *app) bar(dryRun bool, count func() (int64, error)) (progress func(done int64), end func(), err error) {
	if dryRun || !isTerminal(a.Err) {
		return nil, func() {}, nil
	}
	total, err := count()
	if err != nil {
		return nil, nil, err
	}
	const width = 40
	progress = func(done int64) {
		filled := width
		if total > 0 {
			filled = int(min(done*width/total, width))
		}
		_, _ = fmt.Fprintf(a.Err, "\r[%s%s] %d of %d", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, total)
	}
	return progress, func() { _, _ = fmt.Fprintln(a.Err) }, nil
}

// isTerminal reports whether a stream is a screen with somebody before it.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
