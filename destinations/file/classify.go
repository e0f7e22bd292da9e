package file

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
)

// hangs is a destination that does not come to an end.
func hangs(ctx context.Context) error {
	return outbox.Unavailable(fmt.Errorf("write the events: the disk, or who reads the output, hangs: %w", ctx.Err()))
}

// unavailable marks an error as the file's, unless it says more itself.
func unavailable(err error) error {
	if outbox.Classify(err) == outbox.ClassUnavailable {
		return err
	}
	return outbox.Unavailable(err)
}
