// Package modkit is the outbox of the ModKit contract: one table that modules share by namespace and topic, with
// leases, a dead status, and the contract's calls by their names.
//
// A module enqueues a [Message] with [Enqueue], in the transaction of the change it reports. A dispatcher, made by
// [NewDispatcher], hands each message to the handler of its topic, at least once, until the context of its Run
// ends.
//
// [NewModule] is the contract's store, for a module with a loop of its own: [Module.ClaimBatch], [Module.Ack] and
// [Module.Nack], and [Module.Renew] and [Module.Release] for what it holds. [Module.Stats], [Module.Retry],
// [Module.Sweep] and [Module.Purge] are for operations.
//
// [Layout] and [Migrations] describe the table, for the relay, the console and the command line.
package modkit
