// Package outbox is the transactional outbox for Go on PostgreSQL: a business transaction writes its rows and an event in
// one commit, a relay delivers every committed event at least once, and a consumer handles each once.
//
// # Emit
//
// An emitter writes events in your transaction. outboxpgx, outboxsql and outboxgorm are emitters for pgx, database/sql
// and GORM:
//
//	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: "orders"})
//	...
//	_, err = emitter.Emit(ctx, tx, outbox.Event{Type: "order_placed", Key: "order/7", Payload: payload})
//
// Events go to the stream of package pgstream, or to a table of your own that a layout describes; see
// packages pgstore and layouts.
//
// # Relay
//
// A [Relay] claims events from a [Store] (pgstream.Open, pgstore.New), hands them to a [Publisher] and settles what became
// of each: delivered, retried later, or dead. The publishers are in the destinations folder: Kafka, NATS, Pub/Sub,
// RabbitMQ, Redis, webhooks, Go functions.
//
//	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: publisher})
//	...
//	err = relay.Run(ctx)
//
// [Classify] decides what a failed publish means for an event.
//
// # Consume
//
// Delivery is at least once. Package consume and its inboxes make a consumer handle each event once.
//
// # Read on
//
// Package ops is for the person on call: look, retry, replay, purge. Package outboxtest helps with tests. The
// docs folder explains the relay, the stream, layouts, destinations and operation.
package outbox
