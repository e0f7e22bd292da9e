package peers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// timeout ends a test whose peer hangs.
const timeout = 5 * time.Minute

func TestPeers(t *testing.T) {
	t.Parallel()
	for _, peer := range All() {
		t.Run(peer.Name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			// Neither the inserts nor the batches divide the events evenly.
			took, err := peer.Run(ctx, pgtest.URL(t), Workload{Events: 2345, Payload: []byte(`{"order": 1}`), Batch: 700})
			if err != nil {
				t.Fatal(err)
			}
			if took <= 0 || took > timeout {
				t.Errorf("took %v", took)
			}
		})
	}
}

// slowWrites makes the statements by which the peers take or acknowledge events wait.
const slowWrites = `
	CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
	DO $$
	DECLARE
		name regclass;
	BEGIN
		FOR name IN SELECT oid FROM pg_class WHERE relname IN ('river_job', 'watermill_events', 'watermill_offsets_events')
		LOOP
			EXECUTE format('CREATE TRIGGER wait BEFORE UPDATE OR DELETE ON %s EXECUTE FUNCTION wait()', name);
		END LOOP;
	END $$`

const countWaiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`

// TestCancelled ends a run while events are consumed. No time may be reported then, and the peer must be gone, which
// TestMain sees by its goroutines.
func TestCancelled(t *testing.T) {
	t.Parallel()
	for _, peer := range All() {
		t.Run(peer.Name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			// The first run makes the tables.
			if _, err := peer.Run(t.Context(), url, Workload{Events: 1, Payload: []byte(`1`)}); err != nil {
				t.Fatal(err)
			}
			pgtest.Exec(t, pool, slowWrites)

			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			var watcher sync.WaitGroup
			defer watcher.Wait()
			defer cancel()
			watcher.Go(func() {
				defer cancel()
				err := await.Poll(ctx, func() bool {
					var waiting int
					if err := pool.QueryRow(ctx, countWaiting).Scan(&waiting); err != nil {
						t.Error(err)
						return true
					}
					return waiting > 0
				})
				if err != nil {
					t.Error("the run was over before anything waited to be written")
				}
			})
			took, err := peer.Run(ctx, url, Workload{Events: 2000, Payload: []byte(`1`)})
			if !errors.Is(err, context.Canceled) || took != 0 {
				t.Errorf("got %v, %v", took, err)
			}
		})
	}
}

func TestRefusesWorkload(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for name, workload := range map[string]Workload{
		"no events":      {Payload: []byte(`{}`)},
		"no payload":     {Events: 1},
		"not JSON":       {Events: 1, Payload: []byte(`{`)},
		"negative batch": {Events: 1, Payload: []byte(`{}`), Batch: -1},
	} {
		for _, peer := range All() {
			if _, err := peer.Run(t.Context(), url, workload); err == nil {
				t.Errorf("%s took a workload with %s", peer.Name, name)
			}
		}
	}
}

// TestVerify has the ways in which a peer can fail.
func TestVerify(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	workload := Workload{Events: 2}
	if err := verify(t.Context(), pool, workload, 2, "SELECT 0::bigint"); err != nil {
		t.Error(err)
	}
	for name, handled := range map[string]int64{"lost": 1, "repeated": 3} {
		if err := verify(t.Context(), pool, workload, handled, "SELECT 0::bigint"); err == nil {
			t.Errorf("a %s event is not noticed", name)
		}
	}
	if err := verify(t.Context(), pool, workload, 2, "SELECT 1::bigint"); err == nil {
		t.Error("an event that is not acknowledged is not noticed")
	}
	if err := verify(t.Context(), pool, workload, 2, "SELECT count(*) FROM missing"); err == nil {
		t.Error("a failed count is not noticed")
	}
}
