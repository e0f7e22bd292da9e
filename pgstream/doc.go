// Package pgstream is the stream: an append-only log of events on PostgreSQL, read by cursors that walk from snapshot
// to snapshot. No event is skipped, whatever order transactions commit in. Events of one key are published in the order
// of their commits. An open transaction delays nobody. Only events that could not be delivered at once become rows that
// are updated. docs/stream.md explains how.
package pgstream
