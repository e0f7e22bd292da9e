// Package outage says why a server cannot be used, without secrets.
package outage

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Reason returns the error of PostgreSQL or Redis itself, such as a wrong password or a full disk: it names roles, tables
// and limits, but no secrets. Other errors may contain addresses and are not shown.
func Reason(server string, err error) string {
	var refused *pgconn.PgError
	var reply redisError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		return server + ": " + refused.Error()
	case errors.As(err, &reply):
		return server + ": " + reply.Error()
	case errors.As(err, &certificate):
		return server + ": " + certificate.Error()
	case err != nil && strings.Contains(err.Error(), noTLS):
		return server + ": " + noTLS + ": set sslmode in its address to what the server can do"
	}
	return server + " does not answer"
}

// noTLS is pgx's error for a server without TLS if sslmode requires it. It has no type of its own.
const noTLS = "server refused TLS connection"

// redisError is an error that Redis itself sent. It is an interface because not every program has go-redis.
type redisError interface {
	error
	RedisError()
}
