package outbox

import "github.com/packfinderz/outbox"

// PayloadEnvelope is what payload_json holds and what travels to Pub/Sub, byte for byte.
type PayloadEnvelope = outbox.Envelope

// ActorRef names who caused an event.
type ActorRef = outbox.ActorRef
