package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// classify marks an error of Redis, or of the way to it.
func classify(ctx context.Context, stream string, err error) error {
	reply, isReply := errors.AsType[goredis.Error](err)
	op, isOp := errors.AsType[*net.OpError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case failure.Is[*tooFewReplicasError](err):
		return outbox.Unavailable(err)
	case isReply:
		return classifyReply(stream, err, reply.Error())
	case isOp && op.Op == "dial":
		return outbox.Unavailable(err)
	case ctx.Err() != nil:
		return fmt.Errorf("no answer of Redis in time: %w", ctx.Err())
	case errors.Is(err, goredis.ErrPoolTimeout), isNet && timeout.Timeout():
		return fmt.Errorf("no answer of Redis in time: %w", err)
	}
	// All the rest is a connection that broke.
	return outbox.Broken(err)
}

// classifyReply sorts what Redis answered.
func classifyReply(stream string, err error, text string) error {
	if text == missing {
		return outbox.TopicMissing(fmt.Errorf("unknown stream %q: add an entry to it once, or have it created with ?create=true", stream))
	}
	if isDenied(text) {
		if strings.Contains(text, "key") { // the user may add to other streams
			return outbox.TopicMissing(fmt.Errorf("the stream %q: %w", stream, err))
		}
		return outbox.Misconfigured(err)
	}
	switch code(text) {
	// The server accepts nothing from anybody for now: it is full, read-only, starting, busy, cannot write to its
	// disk, or has lost its replicas.
	case "OOM", "READONLY", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "BUSY":
		return outbox.Unavailable(err)
	case "CLUSTERDOWN":
		if strings.Contains(text, "slot") { // the cluster does without the stream's part
			return outbox.TopicUnavailable(err)
		}
		return outbox.Unavailable(err)
	case "TRYAGAIN": // the stream is moving to another node
		return outbox.TopicUnavailable(err)
	case "WRONGTYPE":
		return outbox.TopicMissing(fmt.Errorf("the key %q is no stream: %w", stream, err))
	case "NOAUTH", "WRONGPASS":
		return outbox.Misconfigured(err)
	case "MOVED", "ASK":
		return outbox.Misconfigured(fmt.Errorf("this Redis is a node of a cluster; use ?cluster=true: %w", err))
	}
	begins := func(words string) bool { return strings.HasPrefix(text, words) }
	switch {
	case begins("ERR AUTH"), begins("ERR Client sent AUTH"), begins("ERR DB index"), begins("ERR Protocol error: unauthenticated"):
		return outbox.Misconfigured(err)
	case begins("ERR max number of clients"):
		return outbox.Unavailable(err)
	case begins("ERR Protocol error"): // it closes the connection
		return outbox.Broken(err)
	case strings.Contains(text, "exhausted the last possible ID"):
		return outbox.TopicMissing(fmt.Errorf("the stream %q takes no more: %w", stream, err))
	case strings.Contains(text, "too large"): // "Elements are too large to be stored"
		return outbox.Rejected(err)
	}
	// The cause is unknown: a proxy without scripts says it to everybody.
	return outbox.Unclear(fmt.Errorf("adding to the stream %q: %w", stream, err))
}

// code returns the first word of an error. Before version 7, an error in a script begins with the place in the script.
func code(text string) string {
	words := strings.Fields(text)
	if len(words) > 2 && strings.HasPrefix(words[0], "@user_script") {
		words = words[2:]
	}
	if len(words) == 0 {
		return ""
	}
	return strings.TrimPrefix(words[0], "-")
}

// isDenied reports whether the user may not run the command, or not on this key. A script words it differently.
func isDenied(text string) bool {
	return code(text) == "NOPERM" || strings.Contains(text, "The user executing the script can't")
}

// replyError is an error of Redis that the script has passed on.
type replyError string

// Error returns the text as Redis wrote it.
func (e replyError) Error() string { return string(e) }

// RedisError says that it is one, as the client's own errors do.
func (replyError) RedisError() {}

// tooFewReplicasError is a write that not enough replicas have confirmed.
type tooFewReplicasError struct{ has, want int }

// Error says how many have.
func (e *tooFewReplicasError) Error() string {
	return fmt.Sprintf("%d of %d replicas have confirmed in time", e.has, e.want)
}
