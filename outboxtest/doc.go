// Package outboxtest helps to test code that emits and publishes events. RequireEmitted and RequireNotEmitted look at
// what a transaction has emitted, before anything is committed; Drain delivers what is committed, to a Broker that keeps it
// in memory or to any other publisher. Package testdb, beside it, gives each test a database. See docs/testing.md.
package outboxtest
