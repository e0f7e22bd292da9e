package doctor

import (
	"context"
	"fmt"
	"time"
)

// clockTolerance is the largest harmless difference.
const clockTolerance = 2 * time.Second

func lookAtClock(ctx context.Context, e *exam) (string, error) {
	before := e.config.now()
	var server time.Time
	if err := e.tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
		return "", err
	}
	after := e.config.now()
	// The server read its clock between the two.
	ahead := before.Sub(server)
	if ahead < 0 {
		ahead = min(after.Sub(server), 0)
	}
	if ahead.Abs() > clockTolerance {
		direction := "ahead of"
		if ahead < 0 {
			direction = "behind"
		}
		e.add(Warning, fmt.Sprintf("this machine's clock is %s %s the server's; relays go by the server's, but times that a "+
			"producer sets (not before) "+
			"and the ids it makes go by its own", span(ahead.Abs()), direction),
			"Set the clocks by NTP: timedatectl set-ntp true, on this machine and on the server.")
	}
	return "this machine's clock and the server's agree", nil
}
