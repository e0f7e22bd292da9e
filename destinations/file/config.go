package file

import "errors"

// Config says which file events are appended to.
type Config struct {
	// Path is the file. It is created if it is missing; its folder must exist.
	Path string
	// Append allows a file that another program has written to.
	Append bool
}

// validate rejects a configuration that cannot work.
func (c Config) validate() error {
	if c.Path == "" {
		return errors.New("file: no path; a destination looks like file:events.jsonl")
	}
	return nil
}
