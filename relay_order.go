package outbox

import (
	"context"
	"time"
)

// PublishByKey publishes messages with at most one of each key under way. After a message fails, it answers the
// later ones of its key with ErrNotAttempted. It takes as many rounds as the busiest key has messages, and starts
// none for which too little time is left. A publisher whose broker can refuse one message and accept the next is
// built on it, which makes it a Sequencer. For a publisher that is no Sequencer, the relay calls PublishByKey
// itself.
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
			// Nothing more would be acknowledged, and these were not tried.
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

// hasTime reports whether another round as long as the longest one would end before ctx does: a message must not
// time out only because it came late.
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
