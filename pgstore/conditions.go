package pgstore

import "github.com/packfinderz/outbox/layouts"

// Conditions are what a layout says of its rows, as SQL, for packages that look at tables
// themselves. The table's alias is t, the dead-letter table's d; names are quoted.
type Conditions struct {
	// Table and Letters are the tables; Letters is empty where there is no dead-letter table.
	Table, Letters string
	// Pending rows wait for an attempt, unless they are Dead. Under row locks a relay may hold
	// some of them.
	Pending string
	// Leased rows are held under a lease, run out or not; false where there are no leases.
	Leased string
	// Delivered rows were published.
	Delivered string
	// Dead rows will not be tried again.
	Dead string
	// OpenLetters are the dead letters that keep their events dead; empty where there is no dead-letter table.
	OpenLetters string
}

// ConditionsOf compiles what the layout, which has been validated, says of its rows.
func ConditionsOf(l layouts.Layout) Conditions {
	c := &compiler{l: &layout{l}, config: &Config{}}
	conditions := Conditions{Table: c.table(), Leased: "false", Pending: c.pending()}
	if l.Hold == layouts.HoldLease {
		conditions.Leased = c.leased()
	}
	if l.Done == layouts.DoneStatus {
		conditions.Delivered = t(l.Columns.Status) + " = " + literal(l.States.Delivered)
	} else {
		conditions.Delivered = t(l.Columns.DeliveredAt) + " IS NOT NULL"
	}
	if l.Terminal == layouts.TerminalStatus {
		conditions.Dead = t(l.Columns.Status) + " = " + literal(l.States.Dead)
	} else {
		conditions.Letters, conditions.OpenLetters = c.letters(), c.openLetter()
		conditions.Dead = "NOT (" + conditions.Delivered + ") AND " + c.hasLetter()
	}
	return conditions
}
