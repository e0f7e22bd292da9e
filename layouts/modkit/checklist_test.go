package modkit_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/checklist"
)

// TestChecklist holds the ModKit contract against the tests that prove it, in its own order.
func TestChecklist(t *testing.T) {
	t.Parallel()
	// Several lines name these.
	const (
		states     = "layouts/modkit.TestStates"
		concurrent = "layouts/modkit.TestStatesConcurrently"
		emitter    = "outboxpgx.TestEmitter"
		suite      = "pgstore.TestConformance/modkit"
		failures   = "layouts/modkit.TestDispatcherFailures"
		together   = "examples/minichat.TestTogether"
		killed     = "examples/minichat.TestKilled"
	)
	checklist.Verify(t, []checklist.Line{
		// Purpose.
		{Asks: "no side effect commits without its event", Tests: []string{together, emitter, killed}},
		{Asks: "dead rows are surfaced", Tests: []string{
			"cmd/outbox/internal/cli.TestDeadIsSeen", "cmd/outbox/internal/monitor.TestDead", failures, "examples/minichat.TestTour"}},

		// Storage.
		{Asks: "enqueue runs in the caller's transaction", Tests: []string{emitter, "outboxsql.TestEmitter", "outboxgorm.TestEmitter"}},
		{Asks: "columns, indexes and the partial unique index", Tests: []string{"layouts.TestContracts/modkit"}},
		{Asks: "updated_at is set by the application on every transition, by no trigger", Tests: []string{states, "layouts/modkit.TestUpdatedAt"}},
		{Asks: "the tenant is for routing: claims can be scoped to one", Tests: []string{"layouts/modkit.TestDispatcherSeesOnlyItsOwn"}},
		{Asks: "modules share the table by namespace and topic", Tests: []string{
			"layouts/modkit.TestDispatcherSeesOnlyItsOwn", "pgstore.TestPlanNamespace", "cmd/outbox/internal/cli.TestDrain"}},
		{Asks: "Mini Chat's consumer is idempotent on tenant, turn and request", Tests: []string{
			"examples/minichat.TestRedelivered", "examples/minichat.TestForged"}},
		{Asks: "tenant and dedupe key agree; enqueue validates it, with an error and no row", Tests: []string{emitter}},

		// Enqueue.
		{Asks: "a transaction that fails leaves neither side effects nor event", Tests: []string{together, emitter}},
		{Asks: "exactly one logical event for an operation; a conflict is already enqueued", Tests: []string{emitter, "examples/minichat.TestRace"}},
		{Asks: "the payload has all that its consumer needs, ids first", Tests: []string{killed, "examples/minichat.TestForged"}},
		{Asks: "the payload comes from validated internal state, no usage is a client's", Tests: []string{together}},
		{Asks: "a new row is pending, with no attempts, due now, and free", Tests: []string{states, emitter}},

		// The dispatcher.
		{Asks: "it polls until it is told to stop", Instead: "a cancellation token is the context of Run",
			Tests: []string{"layouts/modkit.TestDispatcher", "outbox.TestNotificationsDoNotArrive"}},
		{Asks: "it is a stateful lifecycle task", Instead: "Run with a context, or Start and Stop",
			Tests: []string{"layouts/modkit.TestDispatcherShutdown", "outbox.TestLifecycle", "outbox.TestStopUnderLoad"}},
		{Asks: "the poll interval is at most a third of the lease", Tests: []string{
			"layouts/modkit.TestDispatcherRefuses", "outbox.TestConfigRefused", "cmd/outbox/internal/cli.TestRelayRefuses"}},
		{Asks: "claims lock rows FOR UPDATE SKIP LOCKED", Tests: []string{"layouts/modkit.TestClaimPassesOverLocked", concurrent}},
		{Asks: "a worker that dies strands no row", Tests: []string{
			"layouts/modkit.TestDispatcherReclaims", killed, "cmd/outbox/internal/chaos.TestChaos"}},
		{Asks: "publish is a callback of the module, and nobody else reads the payload", Tests: []string{"layouts/modkit.TestDispatcher"}},
		{Asks: "success makes a row delivered, for good", Tests: []string{states, "layouts/modkit.TestDispatcher"}},
		{Asks: "failure makes a row pending, later, with attempts and error", Tests: []string{states, failures, "layouts/modkit.TestDispatcherAnswers"}},
		{Asks: "ack succeeds only for the worker that has the lease", Tests: []string{states, "layouts.TestModKitCalls", suite}},
		{Asks: "an ack without the lease is an error, which is logged and never a nack", Tests: []string{
			"layouts/modkit.TestDispatcherLosesItsLease", "layouts.TestModKitCalls"}},
		{Asks: "delivery is at least once, and processing idempotent", Tests: []string{"examples/minichat.TestRedelivered", killed}},

		// Claims.
		{Asks: "a claim is a transaction: a row is changed whole or not at all", Tests: []string{states, concurrent}},
		{Asks: "only due rows and rows whose lease ended are claimed, below the maximum", Tests: []string{states, concurrent}},
		{Asks: "rows at the maximum become dead at the next claim or sweep", Tests: []string{states, "layouts/modkit.TestLoweredMaximum", suite}},
		{Asks: "a claim sets status, attempts, owner, lease and updated_at at once", Tests: []string{states, concurrent}},
		{Asks: "claims are in a fixed order", Instead: "by due time and id, so that what waits for a retry is not at the head",
			Tests: []string{suite, "outbox.TestClaimedOrder"}},
		{Asks: "no row is claimed twice", Tests: []string{concurrent, suite, "outbox.TestSeveralRelays"}},

		// Retries.
		{Asks: "a failure keeps its error and clears the lease", Tests: []string{states, failures}},
		{Asks: "the next attempt follows the formula, jitter within its bounds", Tests: []string{states, failures, "outbox.TestDelay", "outbox.TestDelaySpread"}},
		{Asks: "at the maximum a row is dead, and not retried by itself", Tests: []string{states, failures}},

		// States.
		{Asks: "a pending row is published only after a claim", Tests: []string{states, concurrent}},
		{Asks: "nothing leaves delivered", Tests: []string{states, concurrent}},
		{Asks: "nothing leaves dead but by hand", Tests: []string{states, concurrent, "cmd/outbox/internal/cli.TestRetry"}},
		{Asks: "the additions of this engine: a terminal error, a release", Tests: []string{
			states, "layouts/modkit.TestDispatcherAnswers", "layouts/modkit.TestDispatcherShutdown"}},

		// Acceptance.
		{Asks: "1: at most one row for a dedupe key, exactly one after the first commit", Tests: []string{emitter, "examples/minichat.TestRace", killed}},
		{Asks: "2: who loses a race observes already enqueued", Tests: []string{emitter, "examples/minichat.TestRace"}},
		{Asks: "3: several dispatchers process no row twice", Tests: []string{concurrent, "outbox.TestSeveralRelays"}},
		{Asks: "4: rows of a dispatcher that crashed are reclaimed after their lease", Tests: []string{"layouts/modkit.TestDispatcherReclaims", killed}},
		{Asks: "5: failures reschedule with growing delays and keep the error", Tests: []string{failures}},
		{Asks: "6: publishing is safe under retries", Tests: []string{"examples/minichat.TestRedelivered", killed}},
	})
}
