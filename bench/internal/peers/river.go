package peers

// River: a job per event, which stays in the table as completed.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

var (
	RiverWorkers = 10000
	RiverCooldown = river.FetchCooldownMin
	RiverPoll = river.FetchPollIntervalMin
	RiverSub = false
	RiverTimeout = time.Duration(0)
	RiverPollOnly = false
)

func riverPeer() Peer {
	return Peer{
		Name:   "river",
		Module: "github.com/riverqueue/river",
		Run:    runRiver,
	}
}

// riverArgs is a job whose arguments are the payload as it is.
type riverArgs struct{ json.RawMessage }

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "event" }

func runRiver(ctx context.Context, url string, w Workload) (time.Duration, error) {
	pool, err := open(ctx, url, w)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if err := migrateRiver(ctx, pool); err != nil {
		return 0, err
	}

	var handled atomic.Int64
	done := make(chan struct{})
	workers := river.NewWorkers()
	err = river.AddWorkerSafely(workers, river.WorkFunc(func(context.Context, *river.Job[riverArgs]) error {
		if handled.Add(1) == int64(w.Events) && !RiverSub {
			close(done)
		}
		return nil
	}))
	if err != nil {
		return 0, fmt.Errorf("registering the worker: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     RiverCooldown,
		FetchPollInterval: RiverPoll,
		JobTimeout: RiverTimeout,
		PollOnly: RiverPollOnly,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: RiverWorkers}},
		Workers:           workers,
	})
	if err != nil {
		return 0, fmt.Errorf("making the client: %w", err)
	}
	if err := insertJobs(ctx, client, w); err != nil {
		return 0, err
	}
	if err := settle(ctx, pool, "river_job"); err != nil {
		return 0, err
	}

	if RiverSub {
	ch, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: w.Events, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	go func(){
		for range w.Events { <-ch }
		close(done)
	}()
	}
	start := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, fmt.Errorf("starting the client: %w", err)
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	t1 := time.Since(start)
	if err := client.Stop(context.WithoutCancel(ctx)); err != nil {
		return 0, fmt.Errorf("stopping the client: %w", err)
	}
	elapsed := time.Since(start)
	
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("after %d of %d events: %w", handled.Load(), w.Events, err)
	}
	if RiverSub { elapsed = t1 }
	return elapsed, verify(ctx, pool, w, handled.Load(),
		"SELECT count(*) FROM river_job WHERE state <> 'completed'")
}

func migrateRiver(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("making the migrator: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	return nil
}

func insertJobs(ctx context.Context, client *river.Client[pgx.Tx], w Workload) error {
	params := make([]river.InsertManyParams, min(insertSize, w.Events))
	for i := range params {
		params[i].Args = riverArgs{w.Payload}
	}
	for left := w.Events; left > 0; left -= len(params) {
		params = params[:min(len(params), left)]
		if _, err := client.InsertManyFast(ctx, params); err != nil {
			return fmt.Errorf("inserting jobs: %w", err)
		}
	}
	return nil
}

var _ = errors.New
