package pgstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/pgsession"
)

// A direct connection ends with its server: what is in memory is dropped then, and read again from
// the server that is there next. A pooler keeps the client's connection and goes on with another
// server, or with the same one after a crash that took the last commits back. Its xids and seqs are
// then used a second time, and a cursor in memory would pass over events.

// serverSQL names a server from one start to the next, and the stream on it.
const serverSQL = `extract(epoch FROM pg_postmaster_start_time())::text || ' ' ||
  (SELECT oid FROM pg_database WHERE datname = current_database())::text || ' ' || {'stream_seq'}::oid::text`

// cursorsSQL are the cursors as the table has them. $1 subscription, $2 shards, $3 fences.
const cursorsSQL = `
SELECT ` + serverSQL + `, c.shard, c.s1::text, c.q1
FROM {shards} AS c JOIN unnest($2::smallint[], $3::bigint[]) AS u(shard, fence) ON c.shard = u.shard AND c.fence = u.fence
WHERE c.subscription = $1`

// errBehindPooler makes the store begin again from the stored cursors.
var errBehindPooler = errors.New("the server behind the connection pooler was restarted, or is another one; reading begins again from the stored cursors")

// serverBehind names the server behind a pooler.
func (s *Store) serverBehind(ctx context.Context, conn *pgsession.Conn) (server string, err error) {
	if !conn.Shared() {
		return "", nil
	}
	if err := conn.QueryRow(ctx, s.stream.names(`SELECT `+serverSQL)).Scan(&server); err != nil {
		return "", fmt.Errorf("outbox: look which server is behind the pooler: %w", err)
	}
	return server, nil
}

// stillThere compares the cursors in memory with the table, behind a pooler, after windows were
// opened: opening goes by the table, and reading on by memory. A crash after this look is noticed
// when a page is settled, which names the window.
func (s *Store) stillThere(ctx context.Context, shards []*shard) error {
	if !s.reader.conn.Shared() {
		return nil
	}
	numbers, fences := fenced(shards)
	rows, _ := s.reader.conn.Query(ctx, s.stream.names(cursorsSQL), s.config.Subscription, numbers, fences)
	same := true
	var server, s1 string
	var number int16
	var q1 int64
	_, err := pgx.ForEachRow(rows, []any{&server, &number, &s1, &q1}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		sh := s.shards[number]
		same = same && server == s.reader.server && (sh == nil || !sh.known || sh.cursor.s1 == s1 && sh.cursor.q1 == q1)
		return nil
	})
	if err == nil && !same {
		err = errBehindPooler
	}
	return err
}
