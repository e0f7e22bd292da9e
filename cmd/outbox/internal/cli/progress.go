package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/packfinderz/outbox/ops"
)

// withBar runs something slow and draws its progress, if the output is a screen. A dry run says how much there is
// to do.
func withBar(
	ctx context.Context, screen io.Writer, change ops.Change, do func(context.Context, ops.Change) (*ops.Result, error),
) (*ops.Result, error) {
	if isTerminal(screen) && !change.DryRun {
		b := &bar{screen: screen}
		defer b.end()
		count := change
		count.DryRun, count.Logger = true, slog.New(slog.DiscardHandler)
		counted, err := do(ctx, count)
		if err != nil {
			return nil, orInterrupted(ctx, err)
		}
		b.total, b.more = counted.Events, counted.AtLeast
		change.Progress = b.progress
	}
	result, err := do(ctx, change)
	if result == nil {
		err = orInterrupted(ctx, err)
	}
	return result, err
}

// orInterrupted returns err, or says that ctx was told to stop.
func orInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return interrupted(0, "the same command")
	}
	return err
}

// bar is a progress bar on the last line of a screen. It is drawn only for work of more than one step.
type bar struct {
	screen io.Writer
	total  int64
	more   bool // there are total events at least
	done   int64
	drawn  bool
}

func (b *bar) progress(done int64) {
	if b.done = done; b.drawn || done < b.total {
		b.drawn = true
		b.draw()
	}
}

// end leaves the bar on the screen, without what was typed meanwhile, such as ^C.
func (b *bar) end() {
	if !b.drawn {
		b.write("")
		return
	}
	b.draw()
	_, _ = fmt.Fprintln(b.screen)
}

func (b *bar) draw() { b.write(b.line(columns(b.screen))) }

// write rewrites the line and clears the rest of it.
func (b *bar) write(line string) { _, _ = fmt.Fprintf(b.screen, "\r%s\x1b[K", line) }

// barWidth is the width of the bar if there is room for it.
const barWidth = 40

// line returns the bar and its numbers. It leaves the last column free: a full line makes some terminals start
// another.
func (b *bar) line(columns int) string {
	total := max(b.total, b.done)
	numbers := fmt.Sprintf("%d of %d", b.done, total)
	if b.more {
		numbers += " or more"
	}
	room := columns - 1
	width := min(barWidth, room-len(numbers)-len("[] "))
	switch {
	case width > 0:
		filled := int(int64(width) * b.done / total)
		return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", filled), strings.Repeat(".", width-filled), numbers)
	case len(numbers) <= room:
		return numbers
	default: // half a number is worse than none
		return strconv.FormatInt(b.done, 10)
	}
}
