package view

import "github.com/packfinderz/outbox/pgstream"

// Stats are an outbox's numbers, counted further than those of an Overview.
type Stats struct {
	// Lag is how far each shard of a stream is behind; nil for a table.
	*pgstream.Lag
	// Totals are the counts of a queue table; nil for a stream.
	*Totals
	// Overview divides the backlog.
	Overview *Overview `json:"overview"`
}

// Totals counts the events of a queue table.
type Totals struct {
	// Layout is the layout's name.
	Layout    string `json:"layout"`
	Due       int64  `json:"due"`
	Scheduled int64  `json:"scheduled"`
	Retrying  int64  `json:"retrying"`
	// Held counts the events that relays have claimed.
	Held int64 `json:"held"`
	Dead int64 `json:"dead"`
	// Exhausted counts undelivered events that have used up their attempts.
	Exhausted int64 `json:"exhausted"`
	// Strays counts rows in no known state; nil if they were not counted.
	Strays *int64 `json:"strays"`
	// OldestSeconds is the age of the oldest undelivered event, in seconds.
	OldestSeconds float64 `json:"oldestSeconds"`
}
