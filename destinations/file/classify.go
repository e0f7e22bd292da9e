package file

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
)

// hangs is the error of a write that does not end.
func hangs(ctx context.Context) error {
	return outbox.Unavailable(fmt.Errorf("write the events: the disk, or who reads the output, hangs: %w", ctx.Err()))
}

// unavailable marks an error as the file's, unless it is already marked.
func unavailable(err error) error {
	if outbox.Classify(err) == outbox.ClassUnavailable {
		return err
	}
	return outbox.Unavailable(err)
}
