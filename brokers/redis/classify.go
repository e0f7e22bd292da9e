package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
)

// classify sorts an error of Redis, or of the way to it.
func classify(ctx context.Context, stream string, err error) error {
	var reply goredis.Error
	var few *tooFewReplicasError
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &few):
		return outbox.Unavailable(err)
	case errors.As(err, &reply):
		return classifyReply(stream, err, reply)
	case errors.As(err, &op) && op.Op == "dial":
		return outbox.Unavailable(err)
	case ctx.Err() != nil:
		return fmt.Errorf("no answer of Redis in time: %w", ctx.Err())
	case errors.Is(err, goredis.ErrPoolTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer of Redis in time: %w", err)
	}
	// All the rest is a connection that could not be made, or broke.
	return outbox.Unavailable(err)
}

// classifyReply sorts what Redis answered.
func classifyReply(stream string, err, reply error) error {
	text := reply.Error()
	if text == missing {
		return fmt.Errorf("unknown stream %q: add an entry to it once, or have it created with ?create=true", stream)
	}
	switch code(text) {
	// The server takes nothing from us for the moment: it is full, read-only, starting, cannot
	// write to its disk, has lost its replicas, or does not let us in. None of this is the
	// event's fault, and it may last.
	case "OOM", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "BUSY", "NOAUTH", "WRONGPASS", "NOPERM":
		return outbox.Unavailable(err)
	case "MOVED", "ASK":
		return outbox.Unavailable(fmt.Errorf("this Redis is a node of a cluster; use ?cluster=true: %w", err))
	}
	switch {
	case strings.Contains(text, "too large"): // "Elements are too large to be stored"
		return outbox.Rejected(err)
	case strings.Contains(text, scriptUserDenied), strings.HasPrefix(text, "ERR AUTH"), strings.HasPrefix(text, "ERR Client sent AUTH"),
		strings.HasPrefix(text, "ERR max number of clients"), strings.HasPrefix(text, "ERR DB index"),
		strings.HasPrefix(text, "ERR Protocol error"):
		return outbox.Unavailable(err)
	}
	return fmt.Errorf("adding to the stream %q: %w", stream, err)
}

// code is the word that an error begins with. Before version 7, errors within a script begin with
// the place in the script.
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

// isKeyDenied tells of a user who may run the command, but not on this key.
func isKeyDenied(err error) bool {
	text := err.Error()
	return strings.Contains(text, "key") && (code(text) == "NOPERM" || strings.Contains(text, scriptUserDenied))
}

// scriptUserDenied is how NOPERM is called within a script.
const scriptUserDenied = "The user executing the script can't"

// replyError is an error of Redis that the script has passed on.
type replyError string

// Error is the text as Redis wrote it.
func (e replyError) Error() string { return string(e) }

// RedisError says that it is one, as the client's own errors do.
func (replyError) RedisError() {}

// tooFewReplicasError is a write that not enough replicas have confirmed.
type tooFewReplicasError struct{ has, want int }

// Error says how many have.
func (e *tooFewReplicasError) Error() string {
	return fmt.Sprintf("%d of %d replicas have confirmed in time", e.has, e.want)
}
