package publishertest

import "testing"

// Topic is where the suite's messages go. A Broker has it ready.
const Topic = "orders"

// Broker is a server that a test has to itself, with a client to read back what arrived.
// Each destination's module has one, for the tests of whatever stands on it.
type Broker interface {
	// URL is the destination, as outbox relay --to takes it.
	URL() string
	// Received is all that has arrived in Topic, in the order of arrival where there is one.
	Received(t testing.TB) []Received
	// Stop takes the server away without a word, as kill -9 does; for servers that keep
	// nothing it cuts the connections instead and refuses new ones. Start brings it back at
	// the same address.
	Stop(t testing.TB)
	Start(t testing.TB)
}
