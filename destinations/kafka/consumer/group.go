package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// assign takes partitions that belong to this consumer from now on.
func (r *run) assign(list map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, numbers := range list {
		for _, number := range numbers {
			r.serial++
			p := &partition{place: place{topic, number}, serial: r.serial, idle: make(chan struct{}), committed: -1}
			p.next.Offset, p.highest = -1, -1
			p.ctx, p.cancel = context.WithCancel(r.handling)
			r.partitions[p.place] = p
		}
	}
}

// revoke gives up partitions: what is being handled is finished, within the grace, and committed. Nobody else has
// them before it returns.
func (r *run) revoke(list map[string][]int32) {
	leaving := r.ending(in(list))
	r.settle(leaving)
	r.commit()
	r.remove(leaving)
}

// settle waits until the started records of some partitions are finished, within the grace.
func (r *run) settle(leaving []*partition) {
	limit := time.After(r.config.Process.Grace)
	for _, p := range leaving {
		select {
		case <-p.idle:
		case <-limit:
			return
		case <-r.handling.Done():
			return
		}
	}
}

// lose drops partitions that may already belong to another consumer: nothing of them is committed.
func (r *run) lose(list map[string][]int32) { r.remove(r.ending(in(list))) }

// in returns a function that reports whether a partition is in a list.
func in(list map[string][]int32) func(place) bool {
	return func(at place) bool { return slices.Contains(list[at.topic], at.partition) }
}

// ending stops starting records of some partitions, and returns these.
func (r *run) ending(some func(place) bool) (leaving []*partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, p := range r.partitions {
		if some(at) {
			p.ending = true
			p.checkIdle()
			leaving = append(leaving, p)
		}
	}
	return leaving
}

func (r *run) remove(leaving []*partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range leaving {
		p.cancel()
		delete(r.partitions, p.place)
		if p.paused {
			r.client.ResumeFetchPartitions(map[string][]int32{p.topic: {p.partition}})
		}
	}
	r.changed.Send()
}

// commit commits each partition up to its first unhandled record. One commit runs at a time: none may come after a
// newer one, or after the partition was given up.
func (r *run) commit() {
	r.committing.Lock()
	defer r.committing.Unlock()
	offsets := r.handled()
	if len(offsets) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	var failure error
	r.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		failure = err
		if err == nil {
			failure = r.committed(offsets, response)
		}
	})
	// A commit in the middle of a rebalance is tried again after it.
	if failure != nil && !errors.Is(failure, kerr.RebalanceInProgress) {
		r.log.Warn("what was handled could not be committed; it is tried again, and may come again", "error", failure)
	}
}

// handled returns the offsets to commit.
func (r *run) handled() map[string]map[int32]kgo.EpochOffset {
	r.mu.Lock()
	defer r.mu.Unlock()
	offsets := make(map[string]map[int32]kgo.EpochOffset)
	for _, p := range r.partitions {
		if p.next.Offset <= p.committed {
			continue
		}
		if offsets[p.topic] == nil {
			offsets[p.topic] = make(map[int32]kgo.EpochOffset)
		}
		offsets[p.topic][p.partition] = p.next
	}
	return offsets
}

// committed records what the cluster has, and why it refused the rest.
func (r *run) committed(offsets map[string]map[int32]kgo.EpochOffset, response *kmsg.OffsetCommitResponse) (failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range response.Topics {
		for _, answer := range t.Partitions {
			if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
				failure = err
			} else if p := r.partitions[place{t.Topic, answer.Partition}]; p != nil {
				p.committed = offsets[t.Topic][answer.Partition].Offset
			}
		}
	}
	return failure
}
