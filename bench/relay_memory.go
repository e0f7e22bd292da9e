package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/layouts/shipped"
)

const (
	memoryEvents  = 1_000_000
	memoryCeiling = 64 << 10 // KiB
	memoryLook    = 100 * time.Millisecond
)

var residentPeak = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// benchMemory reads the largest resident size of a relay that drains a million events.
func benchMemory(ctx context.Context, b *bench, outbox *program) error {
	shipped, ok := shipped.Find("modkit")
	if !ok {
		return errors.New("there is no layout modkit")
	}
	layout := shipped.Layout.Name
	url, err := b.loaded(ctx, shipped, memoryEvents)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // it only reads
	command, err := runningRelay(ctx, outbox, layout, url)
	if err != nil {
		return err
	}
	peak, err := peakWhileDraining(ctx, conn, command.Process.Pid, `
		SELECT EXISTS (SELECT FROM modkit_outbox_events WHERE status = 'pending')
		  OR EXISTS (SELECT FROM modkit_outbox_events WHERE status = 'processing')`)
	// It is stopped in any case; how it ends is not measured.
	_ = command.Process.Signal(os.Interrupt)
	_ = command.Wait()
	if err != nil {
		return err
	}
	if err := drained(ctx, layout, url); err != nil {
		return err
	}
	b.promise(layout+": resident memory, a million waiting", peak < memoryCeiling, "%.1f MB (under %d)",
		float64(peak)/1024, memoryCeiling/1024)
	return b.drop(ctx, url)
}

// peakWhileDraining returns the peak, in KiB, when nothing waits any more. The query says
// whether something does, by index and without counting: the relay has to be alone with
// its work.
func peakWhileDraining(ctx context.Context, conn *pgx.Conn, pid int, query string) (peak int, err error) {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("read the relay's memory, which needs Linux: %w", err)
		}
		found := residentPeak.FindSubmatch(status)
		if found == nil {
			return 0, errors.New("the relay has ended")
		}
		if peak, err = strconv.Atoi(string(found[1])); err != nil {
			return 0, fmt.Errorf("read the relay's memory: %w", err)
		}
		var waiting bool
		err = conn.QueryRow(ctx, query).Scan(&waiting)
		if err != nil {
			return 0, fmt.Errorf("look what waits: %w", err)
		}
		if !waiting {
			return peak, nil
		}
		time.Sleep(memoryLook)
	}
}
