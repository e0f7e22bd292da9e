// Package consumer handles the entries of a Redis Stream, as a member of a consumer group.
package consumer

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

// Consumer handles the entries of a stream as a member of a consumer group.
type Consumer struct {
	config    Config
	options   *goredis.UniversalOptions
	processor *consume.Processor
}

// New returns a consumer. It does not connect.
func New(config Config) (*Consumer, error) {
	config = config.withDefaults()
	options, brokerErr := config.Broker.ClientOptions()
	processor, processErr := consume.New(config.Process)
	for _, err := range []error{brokerErr, config.validate(), processErr} {
		if err != nil {
			return nil, fmt.Errorf("redis consumer: %w", err)
		}
	}
	config.Process = processor.Config()
	return &Consumer{config, options, processor}, nil
}

// Run handles entries until ctx ends. Then it takes no more, waits for running handlers, acknowledges what they
// handled, gives the rest back to the group and returns nil. It waits while Redis is unavailable. After the grace it
// cancels the handlers' context, and waits until they return.
func (c *Consumer) Run(ctx context.Context) error {
	client := goredis.NewUniversalClient(c.options)
	g := &group{
		client: client, stream: c.config.Broker.Prefix + c.config.Topic, name: c.config.Group,
		member: c.config.Name, heir: c.config.Name, minIdle: c.config.MinIdle,
	}
	passing := g.member == ""
	if passing {
		g.member, g.heir = newMember(), returned
	}
	r := &run{
		Consumer: c, group: g, log: c.config.Process.Logger.With("stream", g.stream, "group", g.name, "consumer", g.member),
		queues: consuming.NewQueues(c.config.Process.Concurrency), inHand: make(map[string]*item), freed: consuming.NewSignal(), resume: true,
	}
	r.handling, r.abandon = context.WithCancel(context.Background())
	stopKeeping := consuming.Every(c.config.MinIdle/4, func() { r.keepAlive(ctx) })
	r.read(ctx)
	r.finish()
	stopKeeping()
	if passing && !r.unheard.Load() {
		g.leave(ctx) // a name that does not come back
	}
	if err := client.Close(); err != nil {
		return fmt.Errorf("redis: closing the connections: %w", err)
	}
	return nil
}

// newMember makes a name that nobody else has.
func newMember() string {
	host, err := os.Hostname()
	if err != nil {
		host = "consumer" // the rest tells it from others
	}
	return host + "-" + strings.ToLower(rand.Text()[:10])
}
