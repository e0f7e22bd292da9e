package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/natsjs"
)

// DefaultAckWait is the default of Config.AckWait.
const DefaultAckWait = 30 * time.Second

// Config configures a consumer.
type Config struct {
	// Broker says how to reach the server; natsjs.ParseURL makes it. Its Stream is the one to read; empty for that of
	// the first topic. Its Create creates the stream and the durable consumer if they are missing.
	Broker natsjs.Config
	// Topics are the topics to read, as the publisher names them: the broker's SubjectPrefix is put before them,
	// and they may have wildcards. Only a durable consumer that Create creates is limited to them; an existing one
	// has its own.
	Topics []string
	// Durable is the name of the stream's durable pull consumer. Programs with the same name share the
	// messages. A new one begins with the oldest messages.
	Durable string
	// Ordered keeps the order of a key when a message fails: it is tried again here, and the later ones of its key
	// wait. Otherwise the stream delivers it again, after them.
	Ordered bool
	// AckWait is how long after the death of a consumer its messages come again, in a durable consumer that Create
	// creates. Default 30 s. A handler may take longer.
	AckWait time.Duration
	// Process configures how messages are handled.
	Process consume.Config
}

func (c Config) withDefaults() Config {
	c.AckWait = cmp.Or(c.AckWait, DefaultAckWait)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Broker.Stream == "" && len(c.Topics) == 0:
		return errors.New("Config.Topics and Config.Broker.Stream are missing; name one of them")
	case c.Durable == "":
		return errors.New("Config.Durable is missing")
	case strings.ContainsAny(c.Durable, " \t\r\n.*>/\\"):
		return fmt.Errorf("%q cannot be the name of a durable consumer: no spaces, dots, slashes, * or >", c.Durable)
	case c.AckWait < 0:
		return errors.New("Config.AckWait must not be negative")
	}
	return nil
}

// subjects are those of the topics.
func (c Config) subjects() []string {
	list := make([]string, len(c.Topics))
	for i, topic := range c.Topics {
		list[i] = c.Broker.SubjectPrefix + topic
	}
	return list
}
