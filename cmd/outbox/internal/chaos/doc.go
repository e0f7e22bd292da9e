// Package chaos runs the real outbox program under faults and checks what became of every event.
//
// Goroutines in one process share its death; relays do not. So each test here starts two relay processes on one table,
// emits under load, and kills, stops, terminates or starves them at random moments. At the end the history of what was
// committed and what arrived says whether anything was lost, and which fault each duplicate is due to.
//
// The short form runs with every go test. OUTBOX_CHAOS=long runs many more faults and prints a table; OUTBOX_CHAOS_SEED
// repeats the choices of an earlier run, as far as the timing of processes allows.
package chaos
