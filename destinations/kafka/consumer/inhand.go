package consumer

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxAhead is how far a partition is read beyond an unhandled record. All of it comes again after a kill.
const maxAhead = 1000

type place struct {
	topic     string
	partition int32
}

// partition is one assignment of a partition.
type partition struct {
	place
	serial uint64 // of the assignment
	ctx    context.Context
	cancel context.CancelFunc

	entries    []*entry // from the lowest that is not handled
	next       kgo.EpochOffset
	committed  int64
	unfinished int
	failing    int // have failed, and are tried again
	running    int
	paused     bool
	highest    int64         // offset of what was begun
	ending     bool          // nothing beyond that is begun
	idle       chan struct{} // closed when it is ending and nothing is left to do
}

// entry is a record that was not committed.
type entry struct {
	key     string
	offset  int64
	epoch   int32
	done    bool
	failing bool
}

// room returns for how many records there is room; 0 while that is too few to ask for.
func (r *run) room() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 2 * r.config.Process.Concurrency
	for _, p := range r.partitions {
		if !p.paused {
			n -= p.unfinished
		}
	}
	if n < r.config.Process.Concurrency/2 {
		return 0
	}
	return n
}

// add takes a record; nil if its partition is not held.
func (r *run) add(record *kgo.Record) (*partition, *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.partitions[place{record.Topic, record.Partition}]
	if p == nil || p.ending {
		return nil, nil
	}
	e := &entry{key: string(record.Key), offset: record.Offset, epoch: record.LeaderEpoch}
	p.entries = append(p.entries, e)
	p.unfinished++
	return p, e
}

// begin reports whether a record may be handled now. If its partition is being given up, or the consumer stops, only
// overtaken records may be: what comes after a gap cannot be committed, and would come again.
func (r *run) begin(p *partition, e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (p.ending || r.stopping.Err() != nil) && !p.isGap(e) {
		return false
	}
	p.running++
	p.highest = max(p.highest, e.offset)
	return true
}

// isGap reports whether a record lies before one that was begun, and can be handled: neither it nor an earlier one of
// its key has failed.
func (p *partition) isGap(e *entry) bool {
	if e.done || e.failing || e.offset >= p.highest {
		return false
	}
	return !slices.ContainsFunc(p.entries, func(earlier *entry) bool {
		return earlier.offset < e.offset && earlier.failing && !earlier.done && earlier.key != "" && earlier.key == e.key
	})
}

// checkIdle closes idle when a partition that is ending has nothing left to do.
func (p *partition) checkIdle() {
	if !p.ending || p.running > 0 || slices.ContainsFunc(p.entries, p.isGap) {
		return
	}
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// end notes what became of a record: it is done, or failed.
func (r *run) end(p *partition, e *entry, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Send()
	p.running--
	defer p.checkIdle()
	if !done {
		if !e.failing {
			e.failing = true
			p.failing++
		}
		return
	}
	if e.failing {
		p.failing--
	}
	e.done = true
	p.unfinished--
	for len(p.entries) > 0 && p.entries[0].done {
		first := p.entries[0]
		p.entries = p.entries[1:]
		p.next = kgo.EpochOffset{Epoch: first.epoch, Offset: first.offset + 1}
	}
}

// isStuck reports whether a partition must wait: it is full of records behind a failing one, or was read too far
// beyond a slow one.
func (p *partition) isStuck(concurrency int) bool {
	return p.failing > 0 && p.unfinished >= concurrency || len(p.entries) >= maxAhead
}

// sortStuck pauses the partitions that must wait, so that others can go on, and resumes those that need not wait
// any more.
func (r *run) sortStuck() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.partitions {
		stuck := p.isStuck(r.config.Process.Concurrency)
		if stuck == p.paused {
			continue
		}
		p.paused = stuck
		list := map[string][]int32{p.topic: {p.partition}}
		if stuck {
			r.client.PauseFetchPartitions(list)
		} else {
			r.client.ResumeFetchPartitions(list)
		}
		r.changed.Send()
	}
}
