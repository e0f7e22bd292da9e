package consumer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var (
	//go:embed take.lua
	takeSource string
	//go:embed hold.lua
	holdSource string
	//go:embed back.lua
	backSource string

	takeScript = goredis.NewScript(takeSource)
	holdScript = goredis.NewScript(holdSource)
	backScript = goredis.NewScript(backSource)

	// leaveScript removes a consumer's name. Its entries would go with it, so it must have none.
	leaveScript = goredis.NewScript(`
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])`)
)

// returned is the consumer name that holds entries given back by a consumer whose name does not come back.
const returned = "outbox:returned"

// returnedIdle is how long they count as idle: longer than any MinIdle.
const returnedIdle = 24 * time.Hour

// block is how long Redis waits for a new entry, and so how long it takes to notice a stop.
const block = 500 * time.Millisecond

// group is one consumer's view of its group.
type group struct {
	client  goredis.UniversalClient
	stream  string
	name    string
	member  string
	heir    string // who has what is given back
	minIdle time.Duration
}

// pending is an entry that was delivered to us.
type pending struct {
	id      string
	attempt int
	fields  map[string]string // nil if the stream has lost it
}

// errNoGroup means that the stream or the group does not exist.
var errNoGroup = errors.New("no such stream or group")

// read waits for new entries.
func (g *group) read(ctx context.Context, n int) ([]pending, error) {
	ctx, cancel := patiently(ctx, block+callPatience)
	defer cancel()
	streams, err := g.client.XReadGroup(ctx, &goredis.XReadGroupArgs{
		Group: g.name, Consumer: g.member, Streams: []string{g.stream, ">"}, Count: int64(n), Block: block,
	}).Result()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, g.failure("reading", err)
	}
	var list []pending
	for _, s := range streams {
		for _, m := range s.Messages {
			p := pending{id: m.ID, attempt: 1, fields: make(map[string]string, len(m.Values))}
			for name, value := range m.Values {
				p.fields[name] = fmt.Sprint(value)
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// take takes entries that were delivered before: this consumer's own, or those of consumers without a sign of life.
// It leaves out those in hand, and reports whether there may be more.
func (g *group) take(ctx context.Context, own bool, n int, inHand []string) (list []pending, more bool, err error) {
	mine, idle := 0, g.minIdle.Milliseconds()
	if own {
		mine, idle = 1, 0
	}
	args := []any{mine, idle, n}
	for _, id := range inHand {
		args = append(args, id)
	}
	answer, err := g.run(ctx, callPatience, takeScript, args...).Slice()
	if err != nil {
		return nil, false, g.failure("taking over entries", err)
	}
	for _, part := range answer {
		switch part := part.(type) {
		case int64:
			more = part == 1
		case []any:
			p, err := parsePending(part)
			if err != nil {
				return nil, false, err
			}
			list = append(list, p)
		}
	}
	return list, more, nil
}

// parsePending reads one answer of the script. It has no fields if the stream has lost the entry.
func parsePending(part []any) (p pending, err error) {
	if len(part) != 3 {
		return p, fmt.Errorf("redis: the script answered %v", part)
	}
	attempt, _ := part[1].(int64)
	p.id, p.attempt = fmt.Sprint(part[0]), int(attempt)
	fields, has := part[2].([]any)
	if has {
		p.fields = make(map[string]string, len(fields)/2)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		p.fields[fmt.Sprint(fields[i])] = fmt.Sprint(fields[i+1])
	}
	return p, nil
}

// What hold says of an entry.
const (
	keep  = "keep"  // it is still being handled
	again = "again" // it is handled once more
)

// taken is the answer for an entry that is another's by now.
const taken = -1

// hold restarts the idle time of entries, and returns how often each was delivered.
func (g *group) hold(ctx context.Context, what string, ids ...string) ([]int64, error) {
	args := []any{what}
	for _, id := range ids {
		args = append(args, id)
	}
	counts, err := g.run(ctx, callPatience, holdScript, args...).Int64Slice()
	if err == nil && len(counts) != len(ids) {
		err = fmt.Errorf("the script answered %d times for %d entries", len(counts), len(ids))
	}
	if err != nil {
		return nil, g.failure("keeping entries", err)
	}
	return counts, nil
}

// ack says that an entry is done.
func (g *group) ack(ctx context.Context, id string) error {
	ctx, cancel := patiently(ctx, callPatience)
	defer cancel()
	if err := g.client.XAck(ctx, g.stream, g.name, id).Err(); err != nil {
		return g.failure("acknowledging an entry", err)
	}
	return nil
}

// back gives an entry to the next consumer that looks. If it fails, the entry becomes idle after a while.
func (g *group) back(ctx context.Context, id string, attempt int) error {
	if err := g.run(ctx, leavePatience, backScript, g.heir, returnedIdle.Milliseconds(), id, attempt).Err(); err != nil {
		return g.failure("giving an entry back", err)
	}
	return nil
}

// leave removes this consumer's name from the group. A name that stays does no harm.
func (g *group) leave(ctx context.Context) { _ = g.run(ctx, leavePatience, leaveScript).Err() }

// run runs a script for this consumer.
func (g *group) run(ctx context.Context, patience time.Duration, script *goredis.Script, args ...any) *goredis.Cmd {
	ctx, cancel := patiently(ctx, patience)
	defer cancel()
	return script.Run(ctx, g.client, []string{g.stream}, append([]any{g.name, g.member}, args...)...)
}

func (g *group) failure(doing string, err error) error {
	if strings.Contains(err.Error(), "NOGROUP") {
		return fmt.Errorf("%w: stream %q, group %q: create them with XGROUP CREATE … MKSTREAM, or have them created with ?create=true",
			errNoGroup, g.stream, g.name)
	}
	return fmt.Errorf("redis: %s of the stream %q: %w", doing, g.stream, err)
}

// patiently bounds a call, but does not end with ctx: what Redis hands out must not get lost on the way.
func patiently(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// callPatience bounds one call: a hanging server must not hold up a consumer for long.
const callPatience = 5 * time.Second

// leavePatience is less: leaving only spares others a wait.
const leavePatience = 2 * time.Second
