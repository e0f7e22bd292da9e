package layouttest

import "github.com/packfinderz/outbox/layouts"

// Leased is a valid layout with most habits; tests break it one way each.
func Leased() layouts.Layout {
	return layouts.Layout{
		Name: "mine", Table: "events",
		Hold: layouts.HoldLease, Done: layouts.DoneStatus, Count: layouts.CountOnClaim, Terminal: layouts.TerminalStatus, MaxAttempts: 3,
		Columns: layouts.Columns{
			ID: layouts.Column{Name: "id"}, Topic: layouts.Column{Name: "topic"}, DedupeKey: layouts.Column{Name: "dedupe"},
			Payload: layouts.Column{Name: "body"}, Status: layouts.Column{Name: "state"}, Attempts: layouts.Column{Name: "tries"},
			NextAttemptAt: layouts.Column{Name: "due"}, LockedBy: layouts.Column{Name: "owner"}, LockedUntil: layouts.Column{Name: "lease"},
			CreatedAt: layouts.Column{Name: "made"},
		},
		Dedupe: []layouts.Field{layouts.FieldTopic},
		States: &layouts.States{Pending: "new", Processing: "busy", Delivered: "sent", Dead: "dead"},
	}
}

// Lettered is a valid layout with the other habits.
func Lettered() layouts.Layout {
	return layouts.Layout{
		Name: "mine", Table: "events",
		Hold: layouts.HoldRowLock, Done: layouts.DoneTimestamp, Count: layouts.CountOnFailure, Terminal: layouts.TerminalDeadLetter, MaxAttempts: 3,
		Columns: layouts.Columns{
			ID: layouts.Column{Name: "id"}, Payload: layouts.Column{Name: "body"}, Attempts: layouts.Column{Name: "tries"},
			CreatedAt: layouts.Column{Name: "made"}, DeliveredAt: layouts.Column{Name: "sent"},
		},
		DeadLetter: &layouts.DeadLetter{Table: "letters", Columns: layouts.DeadLetterColumns{
			ID: layouts.Column{Name: "id"}, EventID: layouts.Column{Name: "event"}, Payload: layouts.Column{Name: "body"},
			Reason: layouts.Column{Name: "reason"}, FailedAt: layouts.Column{Name: "failed"}, RetriedAt: layouts.Column{Name: "retried"},
		}},
	}
}
