package streamsql

// What a row of outbox_relays, r, says of its relay.
const (
	// LeaseOf is how long its lease is, in seconds. A relay of an earlier program does not say; it renews its lease every ten
	// seconds at least, so that five minutes rob nobody alive.
	LeaseOf = `coalesce(r.lease_seconds, 300)`

	// TooFar is a time at which its lease cannot end, unless the clock was set back since it was written. The additional second
	// is for a statement whose time is a little older than its snapshot.
	TooFar = `now() + make_interval(secs => ` + LeaseOf + ` + 1)`

	// Alive is true if it is alive and works, Waits if it waits for its destination, and Present in both cases.
	Alive   = `r.alive_until > now() AND r.alive_until <= ` + TooFar
	Waits   = `coalesce(r.waits_until > now() AND r.waits_until <= ` + TooFar + `, false)`
	Present = `(` + Alive + ` OR ` + Waits + `)`
)
