package cli

import "os"

// usualColumns is the width of a screen that does not say how wide it is.
const usualColumns = 80

// isTerminal reports whether a stream is a terminal. The null device looks like one.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
