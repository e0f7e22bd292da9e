package outbox

// Limits for emitted events, in bytes. Every key within them fits into a PostgreSQL index.
const (
	// DefaultMaxPayload is the default of EmitConfig.MaxPayload.
	DefaultMaxPayload = 1 << 20
	// MaxName is the limit for a namespace, topic, type, aggregate type, aggregate id and content type.
	MaxName = 255
	// MaxKey is the limit for a dedupe key and for an ordering key.
	MaxKey = 1024
	// MaxHeaders is the limit for all headers together.
	MaxHeaders = 64 << 10
)

// Target is where events are emitted to: a pgstream.Stream, or a layouts.Layout. There are no others.
type Target interface {
	// LayoutName returns the name of the target's layout.
	LayoutName() string
}

// EmitConfig adjusts an emitter. The zero value is ready to use.
type EmitConfig struct {
	// MaxPayload is the largest payload accepted, in bytes. Default 1 MiB; at most
	// 256 MiB.
	MaxPayload int
	// DefaultNamespace is the namespace of events without one, if the target has namespaces.
	DefaultNamespace string
	// DefaultTopic is the topic of events without one, if the target has topics.
	DefaultTopic string
	// Serialize makes transactions that emit events of one key wait for each other. The key's events are then
	// published in the order of their commits even if producers do not lock the aggregate's row before they emit.
	// Each key takes the advisory lock pg_advisory_xact_lock(1869968482, hashtext(key)) until the transaction ends;
	// a call with very many keys needs a larger max_locks_per_transaction. One EmitMany takes its locks in a fixed
	// order, but transactions that emit several times can deadlock, as with any locks. Events without a key take no
	// lock. Only the stream keeps order per key; other targets refuse Serialize.
	Serialize bool
	// Nudge wakes a relay in the same process. InTx calls it after its commit. It must return quickly. The caller
	// cannot fail because of it: the transaction is committed, and a panic is swallowed.
	Nudge func()
}
