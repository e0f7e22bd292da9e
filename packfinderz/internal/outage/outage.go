// Package outage says why a server cannot be used, to people who need not be known.
package outage

import (
	"crypto/tls"
	"errors"
	"strings"

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
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return server + ": " + certificate.Error()
	case err != nil && strings.Contains(err.Error(), noTLS):
		return server + ": " + noTLS + ": set sslmode in its address to what the server can do"
	}
	return server + " does not answer"
}

// noTLS is pgx's word for a server without TLS where sslmode wants it. It has no type of its own.
const noTLS = "server refused TLS connection"

// redisError is an error of go-redis that Redis has written. Not every program has that client.
type redisError interface {
	error
	RedisError()
}
