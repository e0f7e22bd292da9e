// Package pgstream is the stream: an append-only log of events on PostgreSQL that is never
// updated, read by cursors that walk from snapshot to snapshot. No row is skipped whatever
// order transactions commit in, events of one key are published in the order of their
// commits, no open transaction holds anybody up, and only exceptions become mutable rows.
// See docs/stream.md for how and why.
package pgstream
