package peers

// River: each event is a job, which stays in the table as completed.

import (
	"context"
	"encoding/json"
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

// riverWorkers is the size of the pool of workers and with it of the batch that river fetches. Half as many and five
// times as many are slower, and a second client adds nothing. The completer has no public settings.
const riverWorkers = 1000

// riverOpen counts jobs that are in any state but that of success.
const riverOpen = "SELECT count(*) FROM river_job WHERE state <> 'completed'"

func riverJobs() Peer {
	return Peer{
		Name:     River,
		Module:   "github.com/riverqueue/river",
		Settings: fmt.Sprintf("%d workers, least fetch cooldown and poll interval, no job timeout", riverWorkers),
		Run:      runRiver,
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
	allHandled := make(chan struct{})
	client, err := newRiverClient(pool, func() {
		if handled.Add(1) == int64(w.Events) {
			close(allHandled)
		}
	})
	if err != nil {
		return 0, err
	}
	if err := insertJobs(ctx, client, w); err != nil {
		return 0, err
	}
	if err := settle(ctx, pool, "river_job"); err != nil {
		return 0, err
	}

	start := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, fmt.Errorf("starting the client: %w", err)
	}
	select {
	case <-allHandled:
	case <-ctx.Done():
	}
	// River completes jobs in the background. Stop returns when the last of them is written, which is cheaper for it
	// than a subscription to its completions, and does not have to be polled.
	if err := client.Stop(context.WithoutCancel(ctx)); err != nil {
		return 0, fmt.Errorf("stopping the client: %w", err)
	}
	elapsed := time.Since(start)
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("working jobs, %d of %d done: %w", handled.Load(), w.Events, err)
	}
	return elapsed, verify(ctx, pool, w, handled.Load(), riverOpen)
}

func migrateRiver(ctx context.Context, pool *pgxpool.Pool) error {
	config := rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &config)
	if err != nil {
		return fmt.Errorf("making the migrator: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	return nil
}

// newRiverClient makes a client that calls handle for each job.
func newRiverClient(pool *pgxpool.Pool, handle func()) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	err := river.AddWorkerSafely(workers, river.WorkFunc(func(context.Context, *river.Job[riverArgs]) error {
		handle()
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("registering the worker: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: river.FetchPollIntervalMin,
		JobTimeout:        -1,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}},
		Workers:           workers,
	})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return client, nil
}

func insertJobs(ctx context.Context, client *river.Client[pgx.Tx], w Workload) error {
	jobs := make([]river.InsertManyParams, min(insertSize, w.Events))
	for i := range jobs {
		jobs[i].Args = riverArgs{w.Payload}
	}
	for left := w.Events; left > 0; left -= len(jobs) {
		jobs = jobs[:min(len(jobs), left)]
		if _, err := client.InsertManyFast(ctx, jobs); err != nil {
			return fmt.Errorf("inserting jobs: %w", err)
		}
	}
	return nil
}
