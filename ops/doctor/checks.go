package doctor

import "context"

// Check is one of the things that an examination looks at.
type Check struct {
	// Name is what it is called in findings.
	Name string `json:"name"`
	// About says in one line what it looks for.
	About string `json:"about"`

	// reads is set where the tables themselves are read.
	reads bool
	look  func(ctx context.Context, e *exam) error
}

// checks are all of them, in the order of the report: what everything stands on comes first.
var checks = []Check{
	{"server", "the server's version, and whether it is the primary", false, lookAtServer},
	{"layout", "the tables against the layout", false, lookAtLayout},
	{"restored", "a stream that was restored from a dump", true, lookAtRestored},
	{"privileges", "the rights of the connected role", false, lookAtPrivileges},
	{"durability", "settings with which a crash of the server loses events", false, lookAtDurability},
	{"standby", "standbys that a failover would lose events on", false, lookAtStandbys},
	{"promotion", "a standby that was promoted, and deliveries that it knows nothing of", true, lookAtPromotion},
	{"clock", "the difference between this machine's clock and the server's", false, lookAtClock},
	{"notifications", "whether LISTEN works through this connection", true, lookAtNotifications},
	{"indexes", "indexes that are missing or invalid", true, lookAtIndexes},
	{"locks", "locks that keep others from the tables", true, lookAtLocks},
	{"dead-rows", "dead rows that autovacuum does not remove", true, lookAtDeadRows},
	{"vacuum-horizon", "who keeps vacuum from removing dead rows", false, lookAtHorizon},
	{"subscriptions", "subscriptions that were not made to the end, or whose names are refused today", true, lookAtSubscriptions},
	{"relays", "events that wait while no relay takes them", true, lookAtRelays},
	{"stuck", "events and shards whose lease is over and that nobody took back", true, lookAtStuck},
	{"keys", "keys that wait for a person", true, lookAtKeys},
	{"topics", "topics that take nothing, and the events that wait for them", true, lookAtTopics},
	{"retention", "delivered events that should have been purged", true, lookAtRetention},
}

// Checks are all checks, in the order of the report.
func Checks() []Check { return append([]Check(nil), checks...) }

// Those that depend on what is examined.

func lookAtLayout(ctx context.Context, e *exam) error    { return e.patient.verify(ctx, e) }
func lookAtRestored(ctx context.Context, e *exam) error  { return e.patient.restored(ctx, e) }
func lookAtPromotion(ctx context.Context, e *exam) error { return e.patient.promotion(ctx, e) }
func lookAtSubscriptions(ctx context.Context, e *exam) error {
	return e.patient.subscriptions(ctx, e)
}
func lookAtRelays(ctx context.Context, e *exam) error    { return e.patient.relays(ctx, e) }
func lookAtStuck(ctx context.Context, e *exam) error     { return e.patient.stuck(ctx, e) }
func lookAtKeys(ctx context.Context, e *exam) error      { return e.patient.keys(ctx, e) }
func lookAtTopics(ctx context.Context, e *exam) error    { return e.patient.topics(ctx, e) }
func lookAtRetention(ctx context.Context, e *exam) error { return e.patient.retention(ctx, e) }
