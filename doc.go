// Package outbox is the transactional outbox for Go on PostgreSQL: a business
// transaction writes its rows and an event in one commit, a relay delivers every
// committed event to a broker at least once, and a consumer handles each once.
//
// This package holds the words the parts share: Event and what became of it.
// Events are emitted with outboxpgx, outboxsql or outboxgorm, into a table that a
// pgstore.Layout describes. The layouts folder has the shipped ones.
package outbox
