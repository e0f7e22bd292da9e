package packfinderz_test

import "github.com/packfinderz/outbox/internal/testing/checklist"

// pf141 is PF-141: what it asks for, in our words.
func pf141() ticket {
	return ticket{
		acceptance: []checklist.Line{
			line("the program is built and runs by itself", "packfinderz/cmd/local.TestMakeRunOutboxPublisher", publisher+"TestDependencies"),
			line("only rows that are not published are fetched", publisher+"TestSeveralPublishersAndRestarts", emitter+"TestFetchAndMark"),
			line("rows are locked, and locked rows passed over", publisher+"TestLockedRowsArePassedOver", emitter+"TestFetchAndMark"),
			line("each row is tried once in a round", publisher+"TestOneInfoLinePerAttempt", publisher+"TestSeveralPublishersAndRestarts"),
			line("a row that fails does not stop the others", publisher+"TestRetriesAreBounded", publisher+"TestPoisonedRows", "internal/testing/relays.TestOneRefused"),
		},
		others: []checklist.Line{
			line("a transport without business logic",
				publisher+"TestDependencies"),
			line("rows of a batch go out in their order",
				publisher+"TestEveryEventTypeReachesItsTopic", emitter+"TestFetchAndMark"),
			line("polls of an idle table are spread",
				"outbox.TestIdlePollsAreSpread"),
			line("a line per attempt, at its ack",
				publisher+"TestOneInfoLinePerAttempt", "outbox.TestAcksInTheLog"),
			line("the batch size is a setting",
				publisher+"TestEnvironment"),
			line("at least once: an outage and a kill lose nothing",
				publisher+"TestOutage", wholeRoad),
			line("several run beside each other without a leader",
				publisher+"TestSeveralPublishersAndRestarts"),
		},
	}
}

// pf142 is PF-142: what it asks for, in our words.
func pf142() ticket {
	return ticket{
		acceptance: []checklist.Line{
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
		others: []checklist.Line{
			line("one registry decides, for Emit and for the publisher",
				emitter+"TestEmitRefuses", publisher+"TestPoisonedRows"),
			line("the routing cannot be configured: only the names of topics",
				registry+"TestRenamingATopicReroutesNothing", registry+"TestTopicNames"),
			line("a typed payload for each event type",
				payloads+"TestEveryEventTypeHasAPayload", emitter+"TestEmitEveryEventType"),
			line("the payload is checked before there is a message",
				publisher+"TestPoisonedRows", payloads+"TestRequiredFields"),
			line("an empty object is data, NULL is not",
				registry+"TestEmptyDataIsNotNull", registry+"TestRegistryChecksPayloads"),
			line("aggregate_type is there and the expected one",
				registry+"TestRegistryChecksPayloads", publisher+"TestPoisonedRows"),
			line("aggregate_id is there and not nil",
				registry+"TestRegistryChecksPayloads", publisher+"TestPoisonedRows"),
			line("the aggregate of the event is the one that its data names",
				emitter+"TestEmitRefusesTheAggregateOfAnother"),
			line("an id that is nil is not published",
				registry+"TestRegistryHoldsTheEnvelopeAgainstTheRow", publisher+"TestPoisonedRows"),
			line("nothing is coerced: other types, other names, other versions are refused",
				payloads+"TestRequiredFields", payloads+"TestNamesAreExact", payloads+"TestEnvelopes"),
			line("no fan-out: one message for an event",
				publisher+"TestEveryEventTypeReachesItsTopic"),
			line("exhaustive: a value without its route fails the lint",
				"layouts/packfinderz.TestAnEnumValueWithoutARouteFailsTheLint", registry+"TestRegistryIsExhaustive"),
			line("analytics, notifications and billing have topics",
				registry+"TestRegistryIsExhaustive", "packfinderz.TestEnvironmentIsWrittenDown"),
		},
	}
}

// pf143 is PF-143: what it asks for, in our words.
func pf143() ticket {
	return ticket{
		acceptance: []checklist.Line{
			line("a failure that may pass is counted and tried again", publisher+"TestRetriesAreBounded", publisher+"TestOneInfoLinePerAttempt"),
			line("one that may not is terminal at once", publisher+"TestPoisonedRows", "internal/testing/relays.TestTerminal"),
			line("an event is dead at the maximum", publisher+"TestRetriesAreBounded", "internal/testing/relays.TestDeadAfterMaximum"),
			line("nothing is marked as published that Pub/Sub has not taken; an outage counts nothing", publisher+"TestRetriesAreBounded", publisher+"TestOutage"),
			line("the count and the error are in the row", publisher+"TestRetriesAreBounded", publisher+"TestPoisonedRows"),
		},
		others: []checklist.Line{
			line("failures are classified in one place",
				publisher+"TestPoisonedRows", "outbox.TestClassify"),
			line("attempts count after a failed publish, and only then",
				publisher+"TestRetriesAreBounded", publisher+"TestPoisonedRows"),
			line("last_error is short, and text",
				publisher+"TestRetriesAreBounded", "internal/testing/relays.TestHostileErrorText"),
			line("ten attempts unless set",
				publisher+"TestDefaults", publisher+"TestRetriesAreBounded"),
			line("the count in the row decides, not the process",
				publisher+"TestRetriesAreBounded", emitter+"TestFetchAndMark"),
			line("the check comes before the decision to retry",
				publisher+"TestPoisonedRows"),
			line("the payload does not change between attempts",
				publisher+"TestEveryEventTypeReachesItsTopic", model+"TestOnlyPublishedAtAttemptCountAndLastErrorChange"),
			line("no pause for a single row: the loop pauses",
				publisher+"TestRetriesAreBounded"),
		},
	}
}

// pf144 is PF-144: what it asks for, in our words.
func pf144() ticket {
	return ticket{
		acceptance: []checklist.Line{
			line("outbox_dlq has its columns, and the model is the table", "layouts/shipped.TestContracts/packfinderz", model+"TestModelsMatchTheTables"),
			line("a DLQ row has the event's envelope as it was", publisher+"TestPoisonedRows", emitter+"TestGiveUp", emitter+"TestDLQEnvelope"),
			line("the DLQ row and the terminal mark are one transaction", publisher+"TestDLQRowAndMarkAreOneTransaction", emitter+"TestGiveUp"),
			line("nothing brings a DLQ row back by itself, and it does not change", publisher+"TestRetriesAreBounded", model+"TestOnlyRetriedAtOfADeadLetterChanges"),
		},
		others: []checklist.Line{
			line("a goose migration makes outbox_dlq",
				"layouts/shipped.TestContracts/packfinderz", "packfinderz/internal/migrate.TestUp"),
			line("the required fields, with error_reason as an enum",
				"layouts/shipped.TestContracts/packfinderz", "packfinderz/pkg/enums.TestEnumsAreThoseOfTheDatabase"),
			line("the repository reads and writes rows",
				emitter+"TestGiveUp", emitter+"TestListDLQ", emitter+"ExampleDLQRepository_GiveUp"),
			line("rows are append-only",
				model+"TestOnlyRetriedAtOfADeadLetterChanges"),
			line("no best-effort write: both rows or none",
				publisher+"TestDLQRowAndMarkAreOneTransaction"),
			line("retention is a job of its own",
				publisher+"TestCleanup"),
		},
	}
}

// pf145 is PF-145: what it asks for, in our words.
func pf145() ticket {
	return ticket{
		acceptance: []checklist.Line{
			line("what no retry can mend is in the DLQ at once", publisher+"TestPoisonedRows"),
			line("what has used its attempts up is in the DLQ", publisher+"TestRetriesAreBounded"),
			line("what is in the DLQ is not tried again, and not in the way", publisher+"TestRetriesAreBounded", emitter+"TestGiveUp", emitter+"TestPlanDeadRowsAtTheHead"),
			line("the DLQ's payload is the row's, exactly", publisher+"TestPoisonedRows"),
			line("a dead event is not published", publisher+"TestPoisonedRows", publisher+"TestRetriesAreBounded"),
		},
		others: []checklist.Line{
			line("terminal: not retryable, or out of attempts",
				publisher+"TestPoisonedRows", publisher+"TestRetriesAreBounded"),
			line("the DLQ row has event_type, the aggregate, the payload and why",
				publisher+"TestPoisonedRows", emitter+"TestDLQEnvelope"),
			line("the DLQ row is written before the event is terminal: one transaction",
				publisher+"TestDLQRowAndMarkAreOneTransaction"),
			line("published_at of a dead event stays NULL",
				publisher+"TestPoisonedRows", emitter+"TestGiveUp"),
			line("the claim leaves out every event with an open DLQ row, whoever wrote it",
				publisher+"TestAnyDLQRowKeepsItsEventBack", "pgstore.TestClaimOfAnEventThatIsGivenUpInSQL", emitter+"TestPlanDeadRowsAtTheHead"),
			line("nothing is published after the DLQ row",
				publisher+"TestAnyDLQRowKeepsItsEventBack", publisher+"TestRetriesAreBounded"),
			line("raising the maximum revives nothing",
				publisher+"TestRetriesAreBounded"),
		},
	}
}
