package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
)

// addScript adds the messages of one call.
//
//go:embed add.lua
var addScript string

// The script's answers for one message; anything else is an error of Redis.
const (
	added   = "added"
	missing = "missing"
	skipped = "skipped"
)

const (
	newID = "*"
	// noID is an id that XADD refuses, after it has looked at everything else.
	noID        = "0-0"
	noIDRefused = "must be greater than 0-0"
)

// call is what is added to one stream by one run of the script.
type call struct {
	stream string
	args   []any // those of the script
	places []int // which messages they are
	keys   map[string]int

	reply *goredis.Cmd
	err   error // of the call as a whole
}

func newCall(config *Config, stream, id string) *call {
	create := 0
	if config.Create {
		create = 1
	}
	return &call{stream: stream, args: []any{id, create, config.MaxLen}, keys: make(map[string]int)}
}

// add adds a message: its place in the batch, its key and the fields of its entry.
func (c *call) add(place int, key string, fields []any) {
	number := 0
	if key != "" {
		var known bool
		if number, known = c.keys[key]; !known {
			number = len(c.keys) + 1
			c.keys[key] = number
		}
	}
	c.args = append(append(c.args, number, len(fields)), fields...)
	c.places = append(c.places, place)
}

// answers are the script's, one per message.
func (c *call) answers() ([]string, error) {
	if c.err != nil {
		return nil, c.err
	}
	answers, err := c.reply.StringSlice()
	if err == nil && len(answers) != len(c.places) {
		err = fmt.Errorf("the script answered %d times for %d messages", len(answers), len(c.places))
	}
	return answers, err
}

// run makes the calls in one round trip, or in two where a server does not have the script yet.
func (p *Publisher) run(ctx context.Context, calls []*call) {
	p.send(ctx, calls, func(pipe goredis.Pipeliner, c *call) *goredis.Cmd {
		return pipe.EvalSha(ctx, p.digest, []string{c.stream}, c.args...)
	})
	var again []*call
	for _, c := range calls {
		if goredis.HasErrorPrefix(c.err, "NOSCRIPT") {
			again = append(again, c)
		}
	}
	if len(again) > 0 {
		p.send(ctx, again, func(pipe goredis.Pipeliner, c *call) *goredis.Cmd {
			return pipe.Eval(ctx, addScript, []string{c.stream}, c.args...)
		})
	}
}

func (p *Publisher) send(ctx context.Context, calls []*call, evaluate func(goredis.Pipeliner, *call) *goredis.Cmd) {
	pipe := p.client.Pipeline()
	for _, c := range calls {
		c.reply = evaluate(pipe, c)
	}
	var wait *goredis.Cmd
	if p.config.Wait > 0 {
		// It counts the replicas that have what this connection wrote.
		wait = pipe.Do(ctx, "wait", p.config.Wait, p.config.WaitTimeout.Milliseconds())
	}
	answered, failure := execute(ctx, pipe)
	if !answered { // the replies may still be written to
		for _, c := range calls {
			c.err = failure
		}
		return
	}
	for _, c := range calls {
		if c.err = c.reply.Err(); c.err == nil && c.reply.Val() == nil {
			c.err = failure // no command got as far as to have an error of its own
		}
	}
	if wait == nil {
		return
	}
	has, err := wait.Int()
	if err != nil {
		err = fmt.Errorf("waiting for replicas: %w", err)
	} else if has < p.config.Wait {
		err = &tooFewReplicasError{has: has, want: p.config.Wait}
	}
	for _, c := range calls {
		c.err = cmp.Or(c.err, err)
	}
}

// execute sends what a pipeline holds. The client heeds a context's deadline, but not its cancellation, so execute
// does not wait for an answer after that; answered is false then.
func execute(ctx context.Context, pipe goredis.Pipeliner) (answered bool, failure error) {
	done := make(chan error, 1)
	go func() {
		_, err := pipe.Exec(ctx)
		done <- err
	}()
	cancelled := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			close(cancelled)
		}
	})()
	select {
	case failure = <-done:
		return true, failure
	case <-cancelled:
		return false, ctx.Err()
	}
}
