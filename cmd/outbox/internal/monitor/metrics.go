// Package monitor serves a relay's health, readiness and Prometheus metrics.
package monitor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/packfinderz/outbox"
)

// statsEvery is how old the store's numbers may get; counting a backlog is not free.
const statsEvery = 10 * time.Second

// Metrics counts what a relay does. It is a hook of the relay.
type Metrics struct {
	store outbox.Store

	mu                                     sync.Mutex
	published, failed, dead                int64
	released, lost, storeErrors, reclaimed int64
	batches, batchEvents                   int64
	claimTime, publishTime, settleTime     time.Duration
	closedRoutes                           map[string]bool

	stats   outbox.Stats
	statsAt time.Time
}

// New returns the metrics of a relay on a store.
func New(store outbox.Store) *Metrics {
	return &Metrics{store: store, closedRoutes: make(map[string]bool)}
}

// OnClaim counts a claim.
func (m *Metrics) OnClaim(report outbox.ClaimReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches++
	m.batchEvents += int64(report.Events)
	m.reclaimed += int64(report.Reclaimed)
	m.claimTime += report.Took
}

// OnSettle counts outcomes.
func (m *Metrics) OnSettle(report outbox.BatchReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range report.Outcomes {
		if slices.Contains(report.Lost, report.Messages[i].ID) {
			m.lost++ // its new owner counts its outcome
			continue
		}
		switch report.Outcomes[i].Kind {
		case outbox.Delivered:
			m.published++
		case outbox.Failed:
			m.failed++
		case outbox.Died:
			m.dead++
		case outbox.Released, outbox.Stopped:
			m.released++
		}
	}
	m.publishTime += report.Publish
	m.settleTime += report.Settle
}

// OnSweep counts events that had used up their attempts.
func (m *Metrics) OnSweep(dead int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead += dead
}

// OnRoute records which routes are closed.
func (m *Metrics) OnRoute(status outbox.RouteStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if status.Open {
		delete(m.closedRoutes, status.Name())
	} else {
		m.closedRoutes[status.Name()] = true
	}
}

// ForgetRoutes forgets the closed routes, when a relay continues with another destination.
func (m *Metrics) ForgetRoutes() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.closedRoutes)
}

// OnStoreError counts failures of the database.
func (m *Metrics) OnStoreError(error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeErrors++
}

func (m *Metrics) write(ctx context.Context, out io.Writer) error {
	if err := m.refresh(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, metric := range []struct {
		name, kind, help string
		value            any
	}{
		{"outbox_published_total", "counter", "Events the broker acknowledged.", m.published},
		{"outbox_failed_total", "counter", "Attempts that failed and are repeated.", m.failed},
		{"outbox_dead_total", "counter", "Events that ended dead.", m.dead},
		{"outbox_released_total", "counter", "Events given back untried.", m.released},
		{"outbox_lease_lost_total", "counter", "Events that were no longer ours when they were settled.", m.lost},
		{"outbox_reclaimed_total", "counter", "Events taken over after a lease ran out.", m.reclaimed},
		{"outbox_store_errors_total", "counter", "Failures of the database.", m.storeErrors},
		{"outbox_batches_total", "counter", "Batches claimed.", m.batches},
		{"outbox_batch_events_total", "counter", "Events claimed.", m.batchEvents},
		{"outbox_claim_seconds_total", "counter", "Time spent claiming.", m.claimTime.Seconds()},
		{"outbox_publish_seconds_total", "counter", "Time spent publishing.", m.publishTime.Seconds()},
		{"outbox_settle_seconds_total", "counter", "Time spent settling.", m.settleTime.Seconds()},
		{"outbox_closed_routes", "gauge", "Routes (the destination, or topics of it) that take nothing.", len(m.closedRoutes)},
		{"outbox_backlog_events", "gauge", "Events that are neither delivered nor dead, nor held by a person.", m.stats.Due + m.stats.Scheduled + m.stats.Retrying + m.stats.Held},
		{"outbox_scheduled_events", "gauge", "Events scheduled for later.", m.stats.Scheduled},
		{"outbox_retrying_events", "gauge", "Events waiting for their next attempt.", m.stats.Retrying},
		{"outbox_held_events", "gauge", "Events a relay holds.", m.stats.Held},
		{"outbox_dead_events", "gauge", "Events that are dead.", m.stats.Dead},
		{"outbox_max_attempts_events", "gauge", "Undelivered events at their maximum of attempts.", m.stats.Exhausted},
		{"outbox_stray_events", "gauge", "Rows that no state accounts for, so that no relay takes them; -1 if they were not counted.", m.stats.Strays},
		{"outbox_oldest_undelivered_seconds", "gauge", "Age of the oldest undelivered event.", m.stats.OldestAge.Seconds()},
	} {
		if _, err := fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s %v\n",
			metric.name, metric.help, metric.name, metric.kind, metric.name, metric.value); err != nil {
			return err
		}
	}
	return nil
}

// refresh counts the store's events, unless that was done a moment ago.
func (m *Metrics) refresh(ctx context.Context) error {
	m.mu.Lock()
	fresh := time.Since(m.statsAt) < statsEvery
	m.mu.Unlock()
	if fresh {
		return nil
	}
	stats, err := m.store.Stats(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats, m.statsAt = stats, time.Now()
	return nil
}
