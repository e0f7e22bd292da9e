// Package outage says why a server cannot be used, to people who need not be known.
package outage

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Reason is what PostgreSQL or Redis itself has said: that there is no such database, that a password is wrong, that it is full. Their words
// name roles, tables and limits, and no secret. Of a server that said nothing, the error may name addresses and is not told.
func Reason(server string, err error) string {
	var refused *pgconn.PgError
	var reply redisError
	switch {
	case errors.As(err, &refused):
		return server + ": " + refused.Error()
	case errors.As(err, &reply):
		return server + ": " + reply.Error()
	}
	return server + " does not answer"
}

// redisError is an error of go-redis that Redis has written. Not every program has that client.
type redisError interface {
	error
	RedisError()
}
