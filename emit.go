package outbox

// Limits of what can be emitted. They are bytes, chosen so that every key fits
// PostgreSQL's indexes whatever it is made of.
const (
	// DefaultMaxPayload is the largest payload accepted unless EmitConfig says otherwise.
	DefaultMaxPayload = 1 << 20
	// MaxName is the longest namespace, topic, type, aggregate type, aggregate id and
	// content type.
	MaxName = 255
	// MaxKey is the longest dedupe key and ordering key.
	MaxKey = 1024
	// MaxHeaders is the largest size of all headers together.
	MaxHeaders = 64 << 10
)

// Target is where events are emitted to: a pgstream.Stream, or a layouts.Layout. There are no others.
type Target interface {
	// LayoutName is the name of the layout of its tables.
	LayoutName() string
}

// EmitConfig adjusts an emitter. The zero value is ready to use.
type EmitConfig struct {
	// MaxPayload is the largest payload accepted, in bytes. Default 1 MiB; at most
	// 256 MiB.
	MaxPayload int
	// DefaultNamespace is used for events without a namespace, where the target has one.
	DefaultNamespace string
	// DefaultTopic is used for events without a topic, where the target has one.
	DefaultTopic string
	// Serialize makes transactions that emit events of one key wait for each other, so that
	// the key's events are published in the order of their commits even where producers do
	// not lock the row of their aggregate before they emit. It is an advisory lock per key,
	// pg_advisory_xact_lock(1869968482, hashtext(key)), held to the end of the transaction;
	// a call with very many keys needs a larger max_locks_per_transaction. One EmitMany takes
	// its locks in a fixed order; a transaction that emits more than once can meet another in
	// a deadlock, as with any locks. Events without a key take none. Only the stream keeps
	// order per key; other targets refuse Serialize.
	Serialize bool
	// Nudge is called after a transaction that the emitter itself committed (InTx),
	// to wake a relay in the same process. It must return quickly. It cannot make the
	// caller fail: the transaction is committed by then, and a panic is swallowed.
	Nudge func()
}
