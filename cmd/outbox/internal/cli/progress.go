package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/packfinderz/outbox/ops"
)

// withBar runs something that takes long and draws its progress, if there is somebody to see
// it. A dry run says how much there is to do.
func (a *app) withBar(
	ctx context.Context, change ops.Change, do func(context.Context, ops.Change) (*ops.Result, error),
) (*ops.Result, error) {
	if change.DryRun || !isTerminal(a.Err) {
		return do(ctx, change)
	}
	count := change
	count.DryRun = true
	counted, err := do(ctx, count)
	if err != nil {
		return nil, err
	}
	const width = 40
	change.Progress = func(done int64) {
		filled := width
		if counted.Events > 0 {
			filled = int(min(done*width/counted.Events, width))
		}
		_, _ = fmt.Fprintf(a.Err, "\r[%s%s] %d of %d", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, counted.Events)
	}
	result, err := do(ctx, change)
	_, _ = fmt.Fprintln(a.Err)
	return result, err
}

// isTerminal reports whether a stream is a screen with somebody before it. The null device
// looks like one.
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
