package doorito_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/checklist"
)

// TestChecklist lists the lines of the Doorito contract with their tests, in Go and in the Django project of
// examples/django. Instead names what replaces a tool of the contract.
func TestChecklist(t *testing.T) {
	t.Parallel()
	checklist.Verify(t, []checklist.Line{
		// Acceptance.
		{
			Asks:  "a model with a UUIDv7 key, aggregate and payload, a life in states, and a record of its attempts",
			Tests: []string{"examples/django.TestPython/emit", "examples/django.TestPython/uuid7", "layouts/shipped.TestContracts/doorito", "layouts/doorito.TestEmitEvent"},
		}, {
			Asks:  "event type and idempotency key are unique together, so that an event is not there twice",
			Tests: []string{"examples/django.TestPython/emit", "layouts/doorito.TestIdempotencyKey", "layouts/shipped.TestContracts/doorito", "outboxpgx.TestEmitter"},
		}, {
			Asks:  "emit_event with aggregate type, aggregate id, event type, payload and an optional idempotency key",
			Tests: []string{"examples/django.TestPython/emit", "layouts/doorito.TestEmitEvent", "layouts/doorito.ExampleEmitEvent"},
		}, {
			Asks:  "a key is generated where none is given",
			Tests: []string{"examples/django.TestPython/emit", "layouts/doorito.TestIdempotencyKey"},
		}, {
			Asks:    "a periodic Celery task that looks for pending events and tries them with backoff",
			Instead: "deliver_outbox, a command for Celery beat or cron that runs outbox drain; a relay",
			Tests:   []string{"examples/django.TestPython/delivery", "layouts/doorito.TestSafetyNet", "layouts/doorito.TestFailed", "cmd/outbox/internal/cli.TestDrain"},
		}, {
			Asks: "an admin class that shows how events stand",
			Tests: []string{
				"examples/django.TestPython/admin", "examples/django.TestRun",
				"cmd/outbox/internal/cli.TestStats", "ops.TestStates", "ops.TestFilters", "admin.TestEveryOutbox",
			},
		}, {
			Asks:  "tests of the model, the service and the task",
			Tests: []string{"examples/django.TestPython", "pgstore.TestConformance", "pgstore.TestModel", "outboxsql.TestEmitter", "internal/testing/relays.TestRelayDelivers"},
		}, {
			Asks:  "manage.py check finds nothing",
			Tests: []string{"examples/django.TestChecks", "examples/django.TestPython/program", "layouts.TestValidate", "cmd/outbox/internal/cli.TestMigrateAdopt"},
		}, {
			Asks:    "the knowledge base of the project is up to date",
			Instead: "docs/doorito.md, whose code is run",
			Tests:   []string{"layouts/doorito.TestDocumentation", "layouts/doorito.TestDocumentedWakeUp", "layouts/doorito.TestPlainInsert", "examples/django.TestRun"},
		},

		// Emitting.
		{
			Asks:  "the event is there if and only if the change that it tells of is",
			Tests: []string{"examples/django.TestPython/delivery", "layouts/doorito.TestEmitEventRollsBack", "outboxpgx.TestEmitter", "examples/doorito.TestKilled"},
		}, {
			Asks:  "delivery is set off by the commit (transaction.on_commit), and its errors do not reach the request",
			Tests: []string{"examples/django.TestPython/wake", "layouts/doorito.TestRequestNeverFails", "internal/testing/relays.TestNudgeInProcess"},
		}, {
			Asks:  "any app can emit: names of aggregates and types are free, up to 100 characters, and nothing refers to other tables",
			Tests: []string{"layouts/doorito.TestEmitEventNames", "layouts/shipped.TestContracts/doorito", "examples/doorito.TestTour"},
		}, {
			Asks:  "UUIDs, times and decimals in payloads, as DjangoJSONEncoder writes them",
			Tests: []string{"examples/django.TestPython/emit", "layouts/doorito.TestEncode", "layouts/doorito.TestEncodeStruct", "layouts/doorito.TestEncodeIsJSON"},
		}, {
			Asks:  "a new event is pending, with no attempts, at most five, due from its creation on, with no error and not delivered",
			Tests: []string{"layouts/doorito.TestEmitEvent", "examples/django.TestPython/emit", "examples/django.TestGoEmits"},
		}, {
			Asks:  "when it was created, and when it was last changed",
			Tests: []string{"layouts/doorito.TestEmitEvent", "layouts/doorito.TestDelivered", "layouts/doorito.TestRetryByHand"},
		}, {
			Asks:  "producers in Python write the table, too",
			Tests: []string{"examples/django.TestPython/delivery", "examples/django.TestWithoutDjango", "layouts/doorito.TestPlainInsert"},
		},

		// Delivering.
		{
			Asks:  "only events that are pending and due are tried",
			Tests: []string{"pgstore.TestConformance", "pgstore.TestModel", "internal/testing/relays.TestPoisonAtTheHead"},
		}, {
			Asks:  "a partial index on the due time of pending events serves that",
			Tests: []string{"layouts/shipped.TestContracts/doorito", "pgstore.TestPlans"},
		}, {
			Asks:  "handlers are functions, registered by event type",
			Tests: []string{"examples/django.TestPython/receiver", "layouts/doorito.TestDelivered", "destinations/handlers.TestRefuses", "layouts/doorito.Example"},
		}, {
			Asks:  "a consumer reads the payload, not the source's table",
			Tests: []string{"layouts/doorito.TestDelivered", "examples/django.TestGoEmits"},
		}, {
			Asks:  "an event with no handler is tried again",
			Tests: []string{"examples/django.TestPython/delivery", "layouts/doorito.TestNoHandler", "destinations/handlers.TestUnknown"},
		}, {
			Asks:  "success: delivered, with its time, and never due again",
			Tests: []string{"layouts/doorito.TestDelivered", "layouts/doorito.TestDeliveredAfterFailures"},
		}, {
			Asks:  "failure: one attempt more, the error kept, still pending, due after a delay that grows exponentially",
			Tests: []string{"layouts/doorito.TestFailed"},
		}, {
			Asks:  "delays lie between half of the exponential one and all of it, and are spread over that",
			Tests: []string{"outbox.TestDelay", "outbox.TestDelaySpread"},
		}, {
			Asks:  "failed, and never due again, only when the attempts reach the maximum that the row names",
			Tests: []string{"layouts/doorito.TestFailed/the row's own", "layouts/doorito.TestFailed/the model's default", "internal/testing/relays.TestDeadAfterMaximum"},
		}, {
			Asks:  "failed events stay in the table",
			Tests: []string{"layouts/doorito.TestFailed", "pgstore.TestConformance"},
		}, {
			Asks:  "at least once: what a crash leaves undelivered is delivered later",
			Tests: []string{"examples/doorito.TestKilled", "internal/testing/relays.TestServerCrash", "pgstore.TestConformance"},
		}, {
			Asks:  "several workers do not take the same event",
			Tests: []string{"internal/testing/relays.TestSeveralRelays", "pgstore.TestConformance"},
		}, {
			Asks:  "a person retries a failed event: pending, no attempts, due now",
			Tests: []string{"examples/django.TestPython/admin", "layouts/doorito.TestRetryByHand", "cmd/outbox/internal/cli.TestRetryDoorito", "examples/doorito.TestTour"},
		},
	})
}
