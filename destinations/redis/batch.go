package redis

import (
	"context"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// The limits of one round trip. A server does nothing else while it runs a script.
const (
	roundMessages = 1000
	roundBytes    = 8 << 20
)

// batch is one call of Publish: the messages go out in rounds, and in a round by stream.
type batch struct {
	config   *Config
	messages []outbox.Message
	errs     []error
	fields   [][]any
	sizes    []int
	left     []int           // messages still to send, in order
	failed   map[string]bool // keys of which a message failed
	away     bool            // the server is not there
}

// prepare makes the entries and refuses the messages that cannot be one.
func (b *batch) prepare() {
	b.fields, b.sizes = make([][]any, len(b.messages)), make([]int, len(b.messages))
	b.left = make([]int, len(b.messages))
	for i := range b.messages {
		b.left[i] = i
		b.fields[i], b.sizes[i], b.errs[i] = encode(b.config, &b.messages[i])
	}
}

// next takes the messages of the next round. Of a key it takes those of one stream only, because
// the streams of a round do not wait for each other.
func (b *batch) next() []*call {
	var calls []*call
	streams := make(map[string]*call)
	owners := make(map[string]*call) // who has a key in this round; nil is nobody any more
	later := b.left[:0]
	count, bytes := 0, 0
	for n, i := range b.left {
		key := b.messages[i].Key
		owner, owned := owners[key]
		switch {
		case b.failed[key]:
			b.errs[i] = outbox.ErrNotAttempted
			continue
		case b.errs[i] != nil && !owned:
			b.fail(i, b.errs[i])
			continue
		case count == roundMessages || count > 0 && bytes+b.sizes[i] > roundBytes:
			b.left = append(later, b.left[n:]...)
			return calls
		}
		stream := b.config.Prefix + b.messages[i].Topic
		c := streams[stream]
		if owned && (owner == nil || owner != c || b.errs[i] != nil) {
			// It waits for the next round, and so do the later ones of its key.
			owners[key] = nil
			later = append(later, i)
			continue
		}
		if c == nil {
			c = newCall(b.config, stream, newID)
			streams[stream] = c
			calls = append(calls, c)
		}
		if key != "" {
			owners[key] = c
		}
		c.add(i, key, b.fields[i])
		b.fields[i] = nil
		count, bytes = count+1, bytes+b.sizes[i]
	}
	b.left = later
	return calls
}

// settle notes what became of the messages of a call.
func (b *batch) settle(ctx context.Context, c *call) {
	answers, err := c.answers()
	for n, i := range c.places {
		switch {
		case err != nil:
			b.fail(i, classify(ctx, c.stream, err))
		case answers[n] == added:
		case answers[n] == skipped:
			b.errs[i] = outbox.ErrNotAttempted
		default:
			b.fail(i, classify(ctx, c.stream, replyError(answers[n])))
		}
	}
}

func (b *batch) fail(i int, err error) {
	b.errs[i] = err
	if key := b.messages[i].Key; key != "" {
		b.failed[key] = true
	}
	b.away = b.away || outbox.Classify(err) == outbox.ClassUnavailable && !failure.OfTopic(err)
}

// giveUp answers for messages that are not sent, because nothing more would be acknowledged.
func (b *batch) giveUp(calls []*call) {
	for _, c := range calls {
		for _, i := range c.places {
			b.fail(i, outbox.ErrNotAttempted)
		}
	}
}
