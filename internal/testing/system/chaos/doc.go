// Package chaos runs the real outbox program under faults and checks what became of every event.
//
// Goroutines in one process share its death; relays do not. So each test here starts relay processes on one outbox, emits
// under load, and kills, stops, terminates or starves them at random moments. At the end the history of what was
// committed and what arrived says whether anything was lost, whether the events of a key came in the order of their
// commits, and which fault each duplicate is due to.
//
//   - TestChaos: each fault by itself, on the stream and on queue tables.
//   - TestStreamOrder: all faults at once on the stream, under writers that do everything writers may do.
//   - TestRotation: a ring that turns under load, with pg_dump in the way and a subscription that lags behind it.
//   - TestFailover: a primary that crashes under load, and a standby that takes its place.
//   - TestRestore: a stream that goes to another server through pg_dump.
//   - TestUpgrade: migrate up under load, with relays of the version before and of this one.
//
// The short form runs with every go test. OUTBOX_CHAOS=long runs many more faults and prints a table; OUTBOX_CHAOS_SEED
// repeats the choices of an earlier run, as far as the timing of processes allows.
package chaos
