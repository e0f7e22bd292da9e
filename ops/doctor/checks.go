package doctor

import (
	"context"
	"slices"
)

// Check is one part of an examination.
type Check struct {
	// Name is its name in findings.
	Name string `json:"name"`
	// About says in one line what it looks for.
	About string `json:"about"`

	// reads is set if the check reads the tables themselves.
	reads bool
	// look adds what it finds to the exam. If it finds nothing, the report says that all is well in these words.
	look look
}

type look func(ctx context.Context, e *exam) (well string, err error)

// checks are all checks, in the order of the report: what the others rely on comes first.
var checks = []Check{
	{"server", "the server's version, and whether it is the primary", false, lookAtServer},
	{"layout", "the tables against the layout", false, of(patient.verify)},
	{"restored", "a stream that was restored from a dump", true, ofStream(streamPatient.restored, "a table survives a dump and a restore as it is")},
	{"privileges", "the rights of the connected role", false, lookAtPrivileges},
	{"durability", "settings with which a crash of the server loses events", false, lookAtDurability},
	{"standby", "standbys that a failover would lose events on", false, lookAtStandbys},
	{"promotion", "a standby that was promoted and lacks deliveries", true, ofStream(streamPatient.promotion,
		"a table does not remember its server; what was settled in the last moments before a failover is published again")},
	{"clock", "the difference between this machine's clock and the server's", false, lookAtClock},
	{"notifications", "whether LISTEN works through this connection", true, lookAtNotifications},
	{"indexes", "indexes that are missing or invalid", true, lookAtIndexes},
	{"locks", "locks that keep others from the tables", true, lookAtLocks},
	{"dead-rows", "dead rows that autovacuum does not remove", true, lookAtDeadRows},
	{"vacuum-horizon", "who keeps vacuum from removing dead rows", false, lookAtHorizon},
	{"subscriptions", "subscriptions that are unfinished, or whose names are refused today", true, ofStream(streamPatient.subscriptions, "a table has no subscriptions")},
	{"relays", "events that wait while no relay takes them", true, of(patient.relays)},
	{"stuck", "events and shards that nobody took back after their lease ended", true, of(patient.stuck)},
	{"keys", "keys whose events wait for a person", true, ofStream(streamPatient.keys, "a queue table keeps no order of keys, so that none waits")},
	{"topics", "topics that accept nothing, and the events that wait for them", true, ofStream(streamPatient.topics,
		"the table does not know of topics that take nothing; /readyz of the relays does")},
	{"retention", "delivered events that should have been purged", true, of(patient.retention)},
}

// Checks returns all checks in the order of the report.
func Checks() []Check { return slices.Clone(checks) }

func of(method func(patient, context.Context, *exam) (string, error)) look {
	return func(ctx context.Context, e *exam) (string, error) { return method(e.patient, ctx, e) }
}

// ofStream returns a check that only a stream needs. For a table it reports why not.
func ofStream(method func(streamPatient, context.Context, *exam) (string, error), table string) look {
	return func(ctx context.Context, e *exam) (string, error) {
		if stream, ok := e.patient.(streamPatient); ok {
			return method(stream, ctx, e)
		}
		return table, nil
	}
}
