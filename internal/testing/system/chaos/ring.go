//go:build unix

package chaos

// A stream whose ring turns every few seconds, while it is written to, read, emptied and dumped.

import "github.com/packfinderz/outbox/internal/testing/process"

// ring is a run of a stream with a short ring.
type ring struct {
	*run
	stream *stream
	dump   dump // the current one
	purge  *process.Process
	// How often: dumps, purges, and looks at which a rotation waited for a lock, or an emit for a rotation.
	dumps, purges, rotationWaits, emitWaits int
	lagged                                  bool // the program warned that a subscription lags
}

// startDump starts a dump that stands still.
func (r *ring) startDump() {
	r.Helper()
	r.dump = r.run.startDump()
	r.dumps++
}

// endDump lets the dump end.
func (r *ring) endDump() {
	r.Helper()
	r.dump.end(r.run)
}

// live goes on writing and emptying, and looks who waits for whom.
func (r *ring) live() {
	r.Helper()
	r.keepBusy()
	if r.purge == nil || r.purge.Ended() {
		r.endPurge()
		r.purge = r.command("purge", "--retention", "1s")
		r.purges++
	}
	var rotations, emits int
	r.check(r.pool.QueryRow(r.Context(), `
		SELECT count(*) FILTER (WHERE mode = 'AccessExclusiveLock'), count(*) FILTER (WHERE mode = 'RowExclusiveLock')
		FROM pg_locks WHERE NOT granted AND locktype = 'relation'
		  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&rotations, &emits))
	r.rotationWaits += rotations
	r.emitWaits += emits
}

func (r *ring) endPurge() {
	r.Helper()
	if r.purge != nil {
		r.purge.MustSucceed(r.T)
		r.lagged = r.lagged || r.purge.Logs("lag behind the ring")
	}
}

// rows is how many events the stream has.
func (r *ring) rows() int { return r.number(`SELECT count(*) FROM outbox_stream`) }

// slot is the number of the slot that is written, counted from the beginning of time.
func (r *ring) slot() int {
	return r.number(`SELECT floor(extract(epoch FROM clock_timestamp()) / slot_seconds)::bigint FROM outbox_settings`)
}

func (r *ring) number(sql string) int {
	r.Helper()
	n, err := r.stream.count(r.Context(), sql)
	r.check(err)
	return n
}

// turns waits until so many slots have passed.
func (r *ring) turns(slots int) {
	r.Helper()
	end := r.slot() + slots
	r.await("the ring to turn", func() bool {
		r.live()
		return r.slot() >= end
	})
}
