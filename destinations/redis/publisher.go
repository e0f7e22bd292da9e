package redis

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/internal/field"
)

// Publisher adds events to Redis Streams. It is safe for concurrent use.
type Publisher struct {
	config Config
	client goredis.UniversalClient
	digest string
	// last is the stream that was added to last, which Ping asks about.
	last atomic.Pointer[string]
	// using is held by calls under way, which Close lets finish.
	using sync.RWMutex
	// close lets Close be called twice.
	close func() error
}

// New makes a publisher. It needs no server yet: it connects when it is used, and again when the
// connection is lost.
func New(config Config) (*Publisher, error) {
	options, err := config.ClientOptions()
	if err != nil {
		return nil, err
	}
	config.WaitTimeout = cmp.Or(config.WaitTimeout, DefaultWaitTimeout)
	config.MaxSize = cmp.Or(config.MaxSize, DefaultMaxSize)
	sum := sha1.Sum([]byte(addScript)) //nolint:gosec // as above
	p := &Publisher{config: config, client: goredis.NewUniversalClient(options), digest: hex.EncodeToString(sum[:])}
	p.close = sync.OnceValue(p.client.Close)
	return p, nil
}

// KeepsOrder is true: the script that adds a batch stops at a key's first failure.
func (p *Publisher) KeepsOrder() bool { return true }

// Close waits for the calls under way and closes the connections.
func (p *Publisher) Close() error {
	p.using.Lock()
	defer p.using.Unlock()
	return p.close()
}

// Publish adds the messages to their streams, a round trip per 1,000 messages or 8 MiB.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	p.using.RLock()
	defer p.using.RUnlock()
	b := batch{config: &p.config, messages: messages, errs: make([]error, len(messages)), failed: make(map[string]bool)}
	b.prepare()
	for calls := b.next(); len(calls) > 0; calls = b.next() {
		if b.away || over(ctx) {
			b.giveUp(calls)
			continue
		}
		p.last.Store(&calls[0].stream)
		p.run(ctx, calls)
		for _, c := range calls {
			b.settle(ctx, c)
		}
	}
	return b.errs
}

// over reports whether there is no time left. A connection notices that a moment before the context
// does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// pingStream is asked about before anything was published.
const pingStream = "outbox:ping"

// Ping asks whether entries would be taken now: see probe. That the stream it asks about is missing
// or another user's says that Redis is there.
func (p *Publisher) Ping(ctx context.Context) error {
	stream := p.config.Prefix + pingStream
	if last := p.last.Load(); last != nil {
		stream = *last
	}
	if err := p.probe(ctx, stream); err != nil && !isOfStream(err) {
		return err
	}
	return nil
}

// PingTopic asks whether an entry would be taken in the topic's stream.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	return p.probe(ctx, p.config.Prefix+topic)
}

// probe adds an entry with an id that Redis refuses only after it has checked the credentials, the
// memory, the disk and whether it may write at all.
func (p *Publisher) probe(ctx context.Context, stream string) error {
	p.using.RLock()
	defer p.using.RUnlock()
	c := newCall(&p.config, stream, noID)
	c.add(0, "", []any{field.Payload, ""})
	p.run(ctx, []*call{c})
	answers, err := c.answers()
	if err == nil && !strings.Contains(answers[0], noIDRefused) {
		err = replyError(answers[0])
	}
	if err != nil {
		return fmt.Errorf("asking Redis: %w", classify(ctx, stream, err))
	}
	return nil
}
