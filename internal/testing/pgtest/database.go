package pgtest

// The server that tests get their databases in, and the making of those.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

const (
	// urlEnv names an existing server to use instead of a cluster of our own.
	urlEnv = "OUTBOX_TEST_DATABASE_URL"
	// grace bridges the time between two packages of one test run.
	grace = 15 * time.Second
)

// server is where databases are made.
type server struct {
	admin string                       // the address of the database from which others are made
	url   func(database string) string // the address of any other
}

// attached returns the server of this process. It is the one thing the tests of a process share: the hold on the
// cluster, which must last until the process ends.
var attached = sync.OnceValues(attach)

func attach() (*server, error) {
	if existing := os.Getenv(urlEnv); existing != "" {
		return existingServer(existing)
	}
	// No test's context: the cluster is for all of them.
	shared, err := pgserver.Start(context.Background(), pgserver.Config{
		Settings: pgserver.TestSettings(),
		Shared:   true,
		Grace:    grace,
	})
	if err != nil {
		return nil, err
	}
	return &server{admin: shared.URL("postgres"), url: shared.URL}, nil
}

func existingServer(address string) (*server, error) {
	parsed, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(parsed.Scheme, "postgres") {
		// The error of Parse is left out: it quotes the address, which may have a password.
		return nil, errors.New("pgtest: " + urlEnv + " is not an address of the form postgres://user@host/database")
	}
	return &server{
		admin: address,
		url: func(database string) string {
			other := *parsed
			other.Path = "/" + database
			return other.String()
		},
	}, nil
}

// createDatabase makes an empty database with a name of its own. template0 is copied because, other than template1,
// nobody can be connected to it, which would make the copy fail.
func (s *server) createDatabase(ctx context.Context) (string, error) {
	name := "outbox_test_" + strings.ToLower(rand.Text())
	return name, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0")
}

func (s *server) dropDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// exec uses a connection of its own, so that nothing is left open between tests.
func (s *server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return fmt.Errorf("pgtest: connecting to make or drop a database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	return nil
}
