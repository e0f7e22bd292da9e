package outbox

import (
	"context"
	"time"
)

// PublishByKey publishes messages so that of each key at most one is under way, and none
// after one that failed: those are answered with ErrNotAttempted. It takes as many rounds as
// the busiest key has messages, and begins none for which the time left is too short. Publishers whose broker can refuse one message and take the
// next are built on it, and are Sequencers then; for those that are none the relay does it.
func PublishByKey(ctx context.Context, messages []Message, publish func(context.Context, []Message) []error) []error {
	if !repeatsKey(messages) {
		return publish(ctx, messages)
	}
	errs := make([]error, len(messages))
	left := make([]int, len(messages))
	for i := range left {
		left[i] = i
	}
	failed := make(map[string]bool)
	var round []Message
	var places []int
	away := false
	var longest time.Duration
	for len(left) > 0 {
		if away || !hasTime(ctx, longest) {
			// Nothing more will be acknowledged, and none of these was tried.
			for _, i := range left {
				errs[i] = ErrNotAttempted
			}
			return errs
		}
		round, places = round[:0], places[:0]
		used := make(map[string]bool)
		later := left[:0]
		for _, i := range left {
			switch key := messages[i].Key; {
			case key != "" && failed[key]:
				errs[i] = ErrNotAttempted
			case key != "" && used[key]:
				later = append(later, i)
			default:
				used[key] = true
				round, places = append(round, messages[i]), append(places, i)
			}
		}
		left = later
		if len(round) == 0 {
			continue
		}
		start := time.Now()
		for i, err := range publish(ctx, round) {
			if errs[places[i]] = err; err != nil {
				failed[messages[places[i]].Key] = true
				away = away || isAway(err)
			}
		}
		longest = max(longest, time.Since(start))
	}
	return errs
}

// hasTime reports whether another round like the longest one would end before ctx does: a message
// must not run out of time only because it came late.
func hasTime(ctx context.Context, longest time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || longest == 0 || time.Until(deadline) > longest)
}

// repeatsKey reports whether two messages have the same key.
func repeatsKey(messages []Message) bool {
	seen := make(map[string]struct{}, len(messages))
	for i := range messages {
		key := messages[i].Key
		if key == "" {
			continue
		}
		if _, ok := seen[key]; ok {
			return true
		}
		seen[key] = struct{}{}
	}
	return false
}
