package packfinderz_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/checklist"
)

// The folders of the tests.
const (
	publisher   = "packfinderz/cmd/outbox-publisher."
	compliance  = "packfinderz/internal/compliance."
	model       = "packfinderz/pkg/db/model."
	outbox      = "packfinderz/pkg/outbox."
	registry    = "packfinderz/pkg/outbox/registry."
	payloads    = "packfinderz/pkg/outbox/payloads."
	idempotency = "packfinderz/pkg/outbox/idempotency."
	wholeRoad   = "packfinderz/internal/e2e.TestEveryChangeIsNotifiedOnce"
)

// contract has every acceptance line of the tickets, in our words, with the tests that would fail without it.
func contract() map[string][]checklist.Line {
	line := func(asks string, tests ...string) checklist.Line { return checklist.Line{Asks: asks, Tests: tests} }
	return map[string][]checklist.Line{
		"PF-060": {
			line("outbox_events has the locked columns and indexes", "layouts.TestContracts/packfinderz"),
			line("the GORM model is the table, column by column", model+"TestModelsMatchTheTables"),
			line("the enums are defined once, and used by all", "packfinderz/pkg/enums.TestEnumsAreThoseOfTheDatabase", "layouts.TestPackFinderzEnums",
				registry+"TestRegistryIsExhaustive"),
			line("the envelope of a payload, and the other envelopes", outbox+"TestEmitWritesTheEnvelope", payloads+"TestEnvelopes",
				outbox+"TestDLQEnvelope", outbox+"TestConsumerDeadLetter"),
			line("only published_at, attempt_count and last_error change", model+"TestOnlyPublishedAtAttemptCountAndLastErrorChange",
				"layouts.TestPackFinderzAppendOnly"),
		},
		"PF-066": {
			line("every published event has the id of its row, in the body and beside it", publisher+"TestEveryEventTypeReachesItsTopic",
				outbox+"TestEmitWritesTheEnvelope"),
			line("the publisher's log names the event and its aggregate", publisher+"TestOneInfoLinePerAttempt"),
			line("one call checks and marks an event", idempotency+"TestKey", "brokers/redis.TestCheckAndMarkProcessed"),
			line("a duplicate does not have the effect again", compliance+"TestDuplicatesDoNotRunTheEffectAgain", wholeRoad),
			line("of several at once only one is the first", idempotency+"TestOneOfManyIsFirst", "brokers/redis.TestCheckAndMarkRace"),
			line("an example of a consumer", idempotency+"ExampleManager", compliance+"ExampleHandler"),
			line("the strategy is written down", "packfinderz.TestWriteUp"),
		},
		"PF-067": {
			line("make run-outbox-publisher starts the publisher", "packfinderz/cmd/local.TestMakeRunOutboxPublisher"),
			line("it depends on nothing of the domain", publisher+"TestDependencies"),
			line("batch size, poll interval and maximum of attempts can be set", publisher+"TestEnvironment"),
			line("there is a write-up, and it names what there is", "packfinderz.TestWriteUp", "packfinderz.TestEnvironmentIsWrittenDown"),
			line("the write-up says: at least once", "packfinderz.TestWriteUp"),
			line("the write-up says: duplicates", "packfinderz.TestWriteUp"),
			line("the write-up says: consumers must be idempotent", "packfinderz.TestWriteUp"),
			line("several publishers share the table by SKIP LOCKED", publisher+"TestSeveralPublishersAndRestarts", publisher+"TestLockedRowsArePassedOver",
				outbox+"TestFetchAndMark"),
			line("published_at is set after Pub/Sub has answered, and only then", publisher+"TestRetriesAreBounded", "outbox.TestRelayDelivers", wholeRoad),
			line("a failure is counted, with its error, cut", publisher+"TestRetriesAreBounded", "outbox.TestHostileErrorText"),
			line("a restart needs nobody's help", publisher+"TestSeveralPublishersAndRestarts", wholeRoad, "outbox.TestServerCrash"),
			line("readiness is that of PostgreSQL and Pub/Sub", publisher+"TestReadiness"),
			line("the publisher can be run by a developer", "packfinderz/cmd/local.TestMakeRunOutboxPublisher", "packfinderz/cmd/local.TestNothingToLend"),
			line("Heroku runs it as a process of its own", "packfinderz.TestProcesses"),
			line("the defaults are safe, and a bad value is refused", publisher+"TestDefaults", publisher+"TestEnvironment"),
		},
		"PF-141": {
			line("the program is built and runs by itself", "packfinderz/cmd/local.TestMakeRunOutboxPublisher", publisher+"TestDependencies"),
			line("only rows that are not published are fetched", publisher+"TestSeveralPublishersAndRestarts", outbox+"TestFetchAndMark"),
			line("rows are locked, and locked rows passed over", publisher+"TestLockedRowsArePassedOver", outbox+"TestFetchAndMark"),
			line("each row is tried once in a round", publisher+"TestOneInfoLinePerAttempt", publisher+"TestSeveralPublishersAndRestarts"),
			line("a row that fails does not stop the others", publisher+"TestRetriesAreBounded", publisher+"TestPoisonedRows", "outbox.TestOneRefused"),
		},
		"PF-142": {
			line("every event type has exactly one topic", registry+"TestRegistryIsExhaustive", registry+"TestRenamingATopicReroutesNothing",
				publisher+"TestEveryEventTypeReachesItsTopic"),
			line("every event type has its aggregate type", registry+"TestRegistryIsExhaustive"),
			line("an unknown event type goes to the DLQ at once", publisher+"TestPoisonedRows"),
			line("a payload is decoded into its own type", registry+"TestRegistryChecksPayloads", payloads+"TestEveryEventTypeHasAPayload"),
			line("an invalid payload goes to the DLQ at once", publisher+"TestPoisonedRows", payloads+"TestRequiredFields", payloads+"TestRules"),
			line("so does a missing or wrong aggregate", publisher+"TestPoisonedRows", registry+"TestRegistryChecksPayloads"),
			line("nothing unchecked or null is published; an empty object is data", publisher+"TestPoisonedRows", registry+"TestEmptyDataIsNotNull"),
			line("nothing is published but what is in the row", publisher+"TestEveryEventTypeReachesItsTopic", publisher+"TestDependencies"),
		},
		"PF-143": {
			line("a failure that may pass is counted and tried again", publisher+"TestRetriesAreBounded", publisher+"TestOneInfoLinePerAttempt"),
			line("one that may not is terminal at once", publisher+"TestPoisonedRows", "outbox.TestTerminal"),
			line("an event is dead at the maximum", publisher+"TestRetriesAreBounded", "outbox.TestDeadAfterMaximum"),
			line("nothing is marked as published that Pub/Sub has not taken; an outage counts nothing", publisher+"TestRetriesAreBounded", publisher+"TestOutage"),
			line("the count and the error are in the row", publisher+"TestRetriesAreBounded", publisher+"TestPoisonedRows"),
		},
		"PF-144": {
			line("outbox_dlq has its columns, and the model is the table", "layouts.TestContracts/packfinderz", model+"TestModelsMatchTheTables"),
			line("a DLQ row has the event's envelope as it was", publisher+"TestPoisonedRows", outbox+"TestGiveUp", outbox+"TestDLQEnvelope"),
			line("the DLQ row and the terminal mark are one transaction", publisher+"TestDLQRowAndMarkAreOneTransaction", outbox+"TestGiveUp"),
			line("nothing brings a DLQ row back by itself, and it does not change", publisher+"TestRetriesAreBounded", model+"TestOnlyRetriedAtOfADeadLetterChanges"),
		},
		"PF-145": {
			line("what no retry can mend is in the DLQ at once", publisher+"TestPoisonedRows"),
			line("what has used its attempts up is in the DLQ", publisher+"TestRetriesAreBounded"),
			line("what is in the DLQ is not tried again, and not in the way", publisher+"TestRetriesAreBounded", outbox+"TestGiveUp", outbox+"TestPlanDeadRowsAtTheHead"),
			line("the DLQ's payload is the row's, exactly", publisher+"TestPoisonedRows"),
			line("a dead event is not published", publisher+"TestPoisonedRows", publisher+"TestRetriesAreBounded"),
		},
	}
}

// Every ticket has as many lines as it has acceptance criteria, and each line its tests.
func TestChecklist(t *testing.T) {
	t.Parallel()
	want := map[string]int{"PF-060": 5, "PF-066": 7, "PF-067": 15, "PF-141": 5, "PF-142": 8, "PF-143": 5, "PF-144": 4, "PF-145": 5}
	var lines []checklist.Line
	for ticket, list := range contract() {
		if len(list) != want[ticket] {
			t.Errorf("%s has %d lines, want %d", ticket, len(list), want[ticket])
		}
		for _, line := range list {
			line.Asks = ticket + ": " + line.Asks
			lines = append(lines, line)
		}
	}
	if len(contract()) != len(want) {
		t.Errorf("%d tickets, want %d", len(contract()), len(want))
	}
	slices.SortFunc(lines, func(a, b checklist.Line) int { return strings.Compare(a.Asks, b.Asks) })
	checklist.Verify(t, lines)
}
