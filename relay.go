package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrRunning is returned when a running relay is started again.
var ErrRunning = errors.New("outbox: the relay is running already")

// Relay claims events, publishes them and settles what became of them.
type Relay struct {
	config   RelayConfig
	log      *slog.Logger
	attempts attemptLog
	acks     *acks
	routes   *routes
	inFlight *inFlight
	nudge    chan struct{}
	rest     rest
	// passedOver are events that must wait although their rows do not say so.
	passedOver passedOver
	faults     storeFaults
	// inOrder is set when the relay itself must keep the order of keys.
	inOrder bool

	mu      sync.Mutex
	current *run // nil if the relay is not running
}

// NewRelay checks the configuration and returns a relay that is not running yet.
func NewRelay(config RelayConfig) (*Relay, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	sequencer, ok := config.Publisher.(Sequencer)
	_, asks := config.Publisher.(Pinger)
	return &Relay{
		config:   config,
		inOrder:  config.Store.Traits().InOrder && (!ok || !sequencer.KeepsOrder()),
		log:      config.Logger.With("store", config.Store.Traits().Name),
		acks:     newAcks(&config),
		routes:   newRoutes(asks, config.namedTopics()),
		inFlight: newInFlight(),
		nudge:    make(chan struct{}, 1),
	}, nil
}

// Nudge tells the relay that something was committed, so that it claims at once. It never blocks and fits
// EmitConfig.Nudge.
func (r *Relay) Nudge() {
	select {
	case r.nudge <- struct{}{}:
	default: // it is already awake
	}
}

// Run relays until ctx ends. Then it stops claiming, finishes and settles what is being published, releases the
// rest, and returns nil, or an error if not everything was settled. That takes RelayConfig.Grace at most, unless the
// publisher ignores its context. It ends the same way, with ErrGone, when what the store serves was removed.
func (r *Relay) Run(ctx context.Context) error {
	run, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer r.end(run)
	return cmp.Or(r.serve(run), run.result())
}

// Start is Run in the background. Stop, or the end of ctx, stops it.
func (r *Relay) Start(ctx context.Context) error {
	run, err := r.begin(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer r.end(run)
		_ = r.serve(run) // it is logged
	}()
	return nil
}

// Drain relays until no event is due, held or waiting for a retry, and returns nil. It leaves events scheduled for
// later. If ctx ends or Stop is called first, Drain returns an error.
func (r *Relay) Drain(ctx context.Context) error {
	run, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer r.end(run)
	return cmp.Or(r.relay(run, true), run.claiming.Err())
}

// begin starts a run, unless the relay is already running.
func (r *Relay) begin(ctx context.Context) (*run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil {
		return nil, ErrRunning
	}
	r.current = newRun(ctx, r.config.Grace)
	return r.current, nil
}

func (r *Relay) end(run *run) {
	r.mu.Lock()
	r.current = nil
	r.mu.Unlock()
	run.end()
}

func (r *Relay) serve(run *run) error {
	r.log.Info("relay started", "batch_size", r.config.BatchSize, "concurrency", r.config.Concurrency, "poll", r.config.Poll)
	if err := r.relay(run, false); err != nil {
		r.log.Error("relay stopped", "error", err)
		return err
	}
	r.log.Info("relay stopped")
	return nil
}

// relay runs the claim loop, the workers and the housekeeping until the run ends or, with drain, until nothing is
// left to do. It returns an error when the store is gone.
func (r *Relay) relay(run *run, drain bool) error {
	ctx, stop := context.WithCancel(run.claiming)
	defer stop()
	workers, queued := r.slots()
	// held counts the batches that are claimed and not yet settled.
	held := make(chan struct{}, workers+queued)
	work := make(chan claimed, queued)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var outcomes []Outcome // reused from batch to batch
			for c := range work {
				if ctx.Err() != nil || r.routes.isClosed() {
					r.giveBack(run, c)
				} else {
					outcomes = r.process(run, c, outcomes)
				}
				<-held
			}
		})
	}
	var keepers sync.WaitGroup
	keepers.Go(func() { r.keepHouse(ctx) })
	keepers.Go(func() { r.keepRoutes(ctx) })
	if listener, ok := r.config.Store.(Listener); ok && r.config.Listen {
		keepers.Go(func() {
			if err := listener.Listen(ctx, r.Nudge); err != nil && ctx.Err() == nil {
				r.log.Warn("no wake-ups, polling instead", "poll", r.config.Poll, "error", err)
			}
		})
	}
	if drain {
		r.sweep(ctx) // no later sweep would settle exhausted events
	}
	err := r.claimLoop(ctx, run, work, held, drain)
	close(work)
	wg.Wait()
	stop()
	keepers.Wait()
	r.logLeftOut(r.attempts.flush())
	r.leave(run)
	return err
}

// leave lets other relays take over at once.
func (r *Relay) leave(run *run) {
	leaver, ok := r.config.Store.(Leaver)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(run.settling, claimGrace)
	defer cancel()
	if err := leaver.Leave(ctx); err != nil {
		r.log.Warn("the store could not release what it holds; it is free when its lease ends", "error", err)
	}
}

// slots returns how many workers publish, and how many batches may be claimed ahead of them.
func (r *Relay) slots() (workers, queued int) {
	workers, queued = r.config.Concurrency, 1
	if open := r.config.Store.Traits().OpenBatches; open > 0 {
		workers = min(workers, open)
		queued = min(queued, open-workers)
	}
	return workers, queued
}

// keepHouse sweeps and purges at intervals.
func (r *Relay) keepHouse(ctx context.Context) {
	sweep := time.NewTicker(r.config.SweepEvery)
	defer sweep.Stop()
	purge := time.NewTicker(r.config.PurgeEvery)
	defer purge.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			r.sweep(ctx)
		case <-purge.C:
			if r.config.Purge.Retention > 0 {
				r.purge(ctx)
			}
		}
	}
}

func (r *Relay) sweep(ctx context.Context) {
	r.logLeftOut(r.attempts.flush())
	dead, err := r.config.Store.Sweep(ctx)
	if err != nil {
		r.storeFailed(ctx, "sweep", err)
		return
	}
	if dead > 0 {
		r.reportDead(dead)
	}
}

// reportDead reports events that had used up their attempts.
func (r *Relay) reportDead(events int64) {
	r.log.Warn("events with used-up attempts are dead", "events", events)
	each(r.config.Hooks, func(h SweepHook) { h.OnSweep(events) })
}

func (r *Relay) purge(ctx context.Context) {
	deleted, err := r.config.Store.Purge(ctx, r.config.Purge)
	if err != nil {
		r.storeFailed(ctx, "purge", err)
	}
	if deleted > 0 {
		r.log.Info("purged delivered events", "events", deleted)
	}
}
