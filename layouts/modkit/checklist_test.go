package modkit_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/checklist"
)

// TestChecklist lists the lines of the ModKit contract with the tests that prove them, in the contract's order.
func TestChecklist(t *testing.T) {
	t.Parallel()
	// Several lines name these.
	const (
		states     = "layouts/modkit.TestStates"
		concurrent = "layouts/modkit.TestStatesConcurrently"
		enqueue    = "layouts/modkit.TestEnqueue"
		gorm       = "outboxgorm.TestTx"
		emitter    = "outboxpgx.TestEmitter"
		refuses    = "layouts/modkit.TestEnqueueRefuses"
		fields     = "layouts/modkit.TestFields"
		module     = "layouts/modkit.TestModuleKeepsToItself"
		claimCfg   = "layouts/modkit.TestClaimCfg"
		reclaim    = "layouts/modkit.TestReclaimAtOnce"
		leases     = "layouts/modkit.TestDispatcherKeepsItsLeases"
		dispatcher = "layouts/modkit.TestDispatcher"
		only       = "layouts/modkit.TestDispatcherSeesOnlyItsOwn"
		suite      = "pgstore.TestConformance/modkit"
		failures   = "layouts/modkit.TestDispatcherFailures"
		answers    = "layouts/modkit.TestDispatcherAnswers"
		together   = "examples/minichat.TestTogether"
		race       = "examples/minichat.TestRace"
		counted    = "examples/minichat.TestRedelivered"
		killed     = "examples/minichat.TestKilled"
	)
	checklist.Verify(t, []checklist.Line{
		// 1.1 and 1.2, overview and purpose.
		{Asks: "publishing adds no network call to the operation: enqueue is a row", Tests: []string{enqueue, together}},
		{Asks: "modules share one table, each under its namespace and topics", Tests: []string{
			module, only, "layouts/modkit.TestDispatcherTopics", "pgstore.TestPlanNamespace", "cmd/outbox/internal/cli.TestDrain"}},
		{Asks: "completeness: no side effect commits without its event", Tests: []string{together, enqueue, gorm, killed}},
		{Asks: "what emits nothing has no event", Tests: []string{together}},
		{Asks: "delivery is later, and at least once", Tests: []string{counted, killed}},
		{Asks: "dead rows are surfaced", Tests: []string{
			"cmd/outbox/internal/cli.TestDeadIsSeen", "cmd/outbox/internal/monitor.TestDead", failures, "examples/minichat.TestDead"}},

		// 1.5, implementation shape.
		{Asks: "enqueue takes a runner: any open transaction, and nothing else", Tests: []string{enqueue, gorm, refuses}},
		{Asks: "enqueue runs in the transaction of the side effects", Tests: []string{enqueue, gorm, emitter, "outboxsql.TestEmitter", "outboxgorm.TestEmitter"}},
		{Asks: "a dispatcher claims with a lease and delivers with retries", Tests: []string{dispatcher, failures, leases}},
		{Asks: "a stable dedupe key makes enqueue and consumer idempotent", Tests: []string{enqueue, race, counted}},

		// 1.6, storage.
		{Asks: "columns, indexes and the partial unique index", Tests: []string{"layouts/shipped.TestContracts/modkit"}},
		{Asks: "updated_at is set by the application on every transition, by no trigger", Tests: []string{states, "layouts/modkit.TestUpdatedAt"}},
		{Asks: "the tenant is for routing: claims can be scoped to one", Tests: []string{only}},
		{Asks: "the tenant may be missing", Tests: []string{enqueue, only}},
		{Asks: "Mini Chat's key is tenant, turn and request, and its consumer is idempotent on them", Tests: []string{counted, "examples/minichat.TestForged"}},
		{Asks: "other modules have keys of their own", Tests: []string{states, gorm}},
		{Asks: "tenant and dedupe key agree; enqueue validates it, with an error and no row", Tests: []string{refuses, emitter}},

		// 1.7, the API.
		{Asks: "a message has a namespace, topic, tenant, dedupe key and payload, and no more", Tests: []string{fields}},
		{Asks: "enqueue answers with the id", Tests: []string{enqueue, gorm}},
		{Asks: "a claim has a batch size, a lease and a maximum of attempts of its own", Tests: []string{fields, claimCfg}},
		{Asks: "the maximum counts the first attempt, and is the one that a nack dies by", Tests: []string{claimCfg, "layouts/modkit.TestNack"}},
		{Asks: "a claimed message has its id, the message's fields and the attempts", Tests: []string{fields, dispatcher}},
		{Asks: "a store has a database, a worker id and a namespace", Instead: "a Module: the database is a pgxpool.Pool or an sql.DB", Tests: []string{
			"layouts/modkit.TestModuleRefuses", "layouts/modkit.TestModuleOnSQL", "pgstore.TestConformanceSQL", "layouts/modkit.TestNack"}},
		{Asks: "claim_batch, ack and nack", Tests: []string{"layouts/shipped.TestModKitCalls", "layouts/modkit.TestNack", "layouts/modkit.TestModuleOnSQL"}},

		// 2, enqueue.
		{Asks: "a transaction that fails leaves neither side effects nor event", Tests: []string{enqueue, gorm, together, emitter}},
		{Asks: "exactly one logical event for an operation; a conflict is already enqueued", Tests: []string{enqueue, gorm, emitter, race}},
		{Asks: "the payload has the ids that its consumer needs", Tests: []string{killed, "examples/minichat.TestForged"}},

		// 2, the dispatcher.
		{Asks: "it is a stateful lifecycle task", Instead: "Run with a context, or Start and Stop",
			Tests: []string{"layouts/modkit.TestDispatcherShutdown", "internal/testing/relays.TestLifecycle", "internal/testing/relays.TestStopUnderLoad"}},
		{Asks: "it polls until it is told to stop", Instead: "a cancellation token is the context of Run",
			Tests: []string{dispatcher, "internal/testing/relays.TestNotificationsDoNotArrive"}},
		{Asks: "the poll interval is configurable, and at most a third of the lease", Tests: []string{
			"layouts/modkit.TestDispatcherRefuses", "layouts/modkit.TestDispatcherShortLease", "internal/testing/relays.TestConfigRefused", "cmd/outbox/internal/cli.TestRelayRefuses"}},
		{Asks: "claims lock rows FOR UPDATE SKIP LOCKED", Tests: []string{"layouts/modkit.TestClaimPassesOverLocked", concurrent}},
		{Asks: "a worker that dies strands no row", Tests: []string{
			"layouts/modkit.TestDispatcherReclaims", reclaim, killed, "internal/testing/system/chaos.TestChaos"}},
		{Asks: "a worker that lives keeps its rows", Tests: []string{leases, "layouts/modkit.TestDispatcherFitsItsPool", "layouts/modkit.TestRenew"}},
		{Asks: "publish is a callback of the module, and nobody else reads the payload", Tests: []string{dispatcher, "layouts/modkit.TestDispatcherTopics"}},
		{Asks: "success makes a row delivered, for good", Tests: []string{states, dispatcher}},
		{Asks: "failure makes a row pending, later, with attempts and error", Tests: []string{states, failures, answers}},
		{Asks: "ack succeeds only for the worker that has the lease", Tests: []string{states, "layouts/shipped.TestModKitCalls", suite}},
		{Asks: "an ack without the lease is an error, which is logged and never a nack", Tests: []string{
			"layouts/modkit.TestDispatcherLosesItsLease", "layouts/shipped.TestModKitCalls"}},
		{Asks: "processing downstream is idempotent on a stable key", Tests: []string{counted, killed}},

		// 3, enqueue.
		{Asks: "enqueue does not look at outcomes: the caller decides what has an event", Tests: []string{together}},
		{Asks: "the payload comes from validated internal state, no usage is a client's", Tests: []string{together}},
		{Asks: "enqueuing a key again writes no second row", Tests: []string{enqueue, gorm, emitter}},
		{Asks: "the payload has all that its consumer needs", Tests: []string{killed}},
		{Asks: "a new row is pending, with no attempts, due now, and free", Tests: []string{enqueue, states, emitter}},

		// 3, claims.
		{Asks: "a claim is a transaction: a row is changed whole or not at all", Tests: []string{states, concurrent}},
		{Asks: "only due rows and rows whose lease ended are claimed, below the maximum", Tests: []string{states, concurrent, claimCfg}},
		{Asks: "the claim itself takes over what has expired, whatever the lease, by an index", Tests: []string{reclaim, "pgstore.TestPlans"}},
		{Asks: "rows at the maximum become dead at the next claim or sweep", Tests: []string{states, "layouts/modkit.TestLoweredMaximum", module, suite}},
		{Asks: "a claim sets status, attempts, owner, lease and updated_at at once", Tests: []string{states, concurrent}},
		{Asks: "claims are in a fixed order", Instead: "by due time and id, so that what waits for a retry is not at the head; what has expired, by the end of its lease",
			Tests: []string{suite, "internal/testing/relays.TestClaimedOrder"}},
		{Asks: "no row is claimed twice", Tests: []string{concurrent, suite, "internal/testing/relays.TestSeveralRelays"}},

		// 3, retries.
		{Asks: "a failure keeps its error and clears the lease", Tests: []string{states, failures}},
		{Asks: "the next attempt follows the formula, jitter within its bounds", Tests: []string{states, failures, "outbox.TestDelay", "outbox.TestDelaySpread"}},
		{Asks: "at the maximum a row is dead, and not retried by itself", Tests: []string{states, failures}},

		// 4, states.
		{Asks: "a pending row is published only after a claim", Tests: []string{states, concurrent}},
		{Asks: "a processing row may be published again after a crash", Tests: []string{"layouts/modkit.TestDispatcherReclaims", counted}},
		{Asks: "nothing leaves delivered", Tests: []string{states, concurrent}},
		{Asks: "nothing leaves dead but by hand", Tests: []string{states, concurrent, module, "cmd/outbox/internal/cli.TestRetry"}},
		{Asks: "the additions of this engine: a terminal error, a release", Tests: []string{
			states, answers, "layouts/modkit.TestDispatcherShutdown"}},

		// 6, acceptance. Section 5 says the same of what is above.
		{Asks: "1: at most one row for a dedupe key, exactly one after the first commit", Tests: []string{enqueue, emitter, race, killed}},
		{Asks: "2: who loses a race observes already enqueued", Tests: []string{emitter, race}},
		{Asks: "3: several dispatchers process no row twice", Tests: []string{concurrent, "internal/testing/relays.TestSeveralRelays"}},
		{Asks: "4: rows of a dispatcher that crashed are reclaimed after their lease", Tests: []string{"layouts/modkit.TestDispatcherReclaims", reclaim, killed}},
		{Asks: "5: failures reschedule with growing delays and keep the error", Tests: []string{failures}},
		{Asks: "6: publishing is safe under retries", Tests: []string{counted, killed}},
	})
}
