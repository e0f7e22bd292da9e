//go:build unix

package chaos

// A stream whose ring turns every few seconds, while it is written to, read, emptied and dumped.

import (
	"io"
	"os"

	"github.com/packfinderz/outbox/cmd/outbox/internal/process"
	"github.com/packfinderz/outbox/internal/pgserver"
)

// ring is a run of a stream with a short ring.
type ring struct {
	*run
	stream *stream
	dump   *process.Process // the current pg_dump
	from   *os.File         // what it writes, to be read
	purge  *process.Process
	// How often: dumps, purges, and looks at which a rotation waited for a lock, or an emit for a rotation.
	dumps, purges, rotationWaits, emitWaits int
	lagged                                  bool // the program warned that a subscription lags
}

// startDump starts a pg_dump that nobody reads: when it has filled the pipe it stands still, with all its locks.
func (r *ring) startDump() {
	r.Helper()
	program, err := pgserver.Program("pg_dump")
	r.check(err)
	from, to, err := os.Pipe()
	r.check(err)
	r.from = from
	r.dump = process.Start(r.T, r.file("pg_dump.log"), to, program, "--dbname", r.url)
	r.check(to.Close())
	r.dumps++
}

// endDump reads what the dump has to say.
func (r *ring) endDump() {
	r.Helper()
	_, err := io.Copy(io.Discard, r.from)
	r.check(err)
	r.check(r.from.Close())
	r.dump.MustSucceed(r.T)
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
