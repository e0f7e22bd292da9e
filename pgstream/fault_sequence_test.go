package pgstream

import (
	"strconv"
	"strings"
	"testing"
)

// TestFaultsOfTheSequence are mistakes in the numbers of events.
func TestFaultsOfTheSequence(t *testing.T) {
	t.Parallel()
	testFaults(t,
		fault{
			name: "SELECT last_value on a fresh sequence", shows: lost,
			put: func(s *stage, sql *statements) {
				var stream Stream // where the store has found it
				s.scan(`SELECT current_schema()`, &stream.Schema)
				s.swapAll(append(sql.openers(), &sql.refresh), stream.names(`coalesce(pg_sequence_last_value({'stream_seq'}), 0)`),
					"(SELECT last_value FROM outbox_stream_seq)")
			},
			// Until the first value is drawn, last_value is 1 all the same: the first event is
			// behind the cursor before it is written.
			script: func(s *stage) {
				store := s.open(Config{})
				s.drain(store)
				s.emit("a")
				s.drain(store)
			},
		},
		fault{name: "a sequence that hands out several values at a time", shows: lost, script: scriptCache},
		fault{name: "the shard by the remainder of a hash", shows: lost, script: scriptRemainder},
	)
}

// scriptCache are two producers, one of which was given values that it uses only after the
// cursor has passed them.
func scriptCache(s *stage) {
	store := s.open(Config{})
	s.idle(store)
	if s.faulty {
		s.exec(`ALTER SEQUENCE outbox_stream_seq CACHE 10`)
		if _, err := Open(s.Context(), s.pool, Stream{}, Config{}); err == nil || !strings.Contains(err.Error(), "CACHE 1") {
			s.Errorf("a store opens on such a sequence: %v", err)
		}
	}
	first, second := connect(s.T, s.url), connect(s.T, s.url)
	s.beginOn(first).insert("a").commit()
	s.beginOn(second).insert("b").commit()
	s.drain(store)
	s.beginOn(first).insert("a").commit()
	s.drain(store)
}

// scriptRemainder has producers that compute the shard with %, which is negative for half of
// all keys. The table refuses such rows; without its check nobody reads them.
func scriptRemainder(s *stage) {
	if s.faulty {
		s.exec(`CREATE OR REPLACE FUNCTION outbox_shard(key text, id uuid) RETURNS smallint
			LANGUAGE sql IMMUTABLE RETURN (hashtextextended(coalesce(key, id::text), 0) % 8)::smallint`)
		_, err := s.pool.Exec(s.Context(), `INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
			SELECT outbox_shard(key::text, NULL), gen_random_uuid(), 'orders', 'made', key, '' FROM generate_series(1, 20) AS key`)
		if err == nil || !strings.Contains(err.Error(), "outbox_stream_shard_check") {
			s.Errorf("the table takes a negative shard: %v", err)
		}
		s.exec(`ALTER TABLE outbox_stream DROP CONSTRAINT outbox_stream_shard_check`)
	}
	store := s.open(Config{})
	for i := range 20 {
		s.emit("key-" + strconv.Itoa(i))
	}
	s.drain(store)
}
