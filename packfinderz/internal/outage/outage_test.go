package outage_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/packfinderz/internal/outage"
)

// What a server said is told, what our own side knows is not.
func TestReason(t *testing.T) {
	t.Parallel()
	refused := &pgconn.PgError{Severity: "FATAL", Message: `database "x" does not exist`, Code: "3D000"}
	for want, err := range map[string]error{
		`it: FATAL: database "x" does not exist (SQLSTATE 3D000)`:                                 fmt.Errorf("connect to u@10.0.0.1: %w", refused),
		"it: WRONGPASS invalid":                                                                   fmt.Errorf("connect to 10.0.0.1: %w", reply("WRONGPASS invalid")),
		"it: server refused TLS connection: set sslmode in its address to what the server can do": errors.New("connect to u@10.0.0.1: tls error: server refused TLS connection"),
		"it does not answer":                                                                      errors.New("dial tcp 10.0.0.1: connection refused"),
	} {
		if got := outage.Reason("it", err); got != want {
			t.Errorf("%v is told as %q, want %q", err, got, want)
		}
	}
}

// reply is as an error of go-redis.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}
