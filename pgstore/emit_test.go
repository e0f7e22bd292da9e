package pgstore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxpgx"
)

// TestCustomLayout emits into a table of a team's own, with the fields that no shipped
// layout has: headers, key, content type, bytes.
func TestCustomLayout(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, oursSQL)
	emitter, err := outboxpgx.New(ours(), outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	event := outbox.Event{
		Type: "made", Key: "k", Headers: map[string]string{"trace": `<"\>`}, ContentType: "application/octet-stream",
		Payload: []byte{0, 0xff, '{'},
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	one, err := emitter.Emit(t.Context(), tx, event)
	if err != nil {
		t.Fatal(err)
	}
	empty := event
	empty.Payload = []byte{}                                     // bytes may be empty
	other := outbox.Event{Type: "gone", Payload: []byte("bare")} // shares nothing, and sets less
	alike, err := emitter.EmitMany(t.Context(), tx, []outbox.Event{event, event})
	if err != nil {
		t.Fatal(err)
	}
	many, err := emitter.EmitMany(t.Context(), tx, []outbox.Event{event, empty, other})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uuid.UUID]outbox.Event{
		one.ID: event, alike[0].ID: event, alike[1].ID: event, many[0].ID: event, many[1].ID: empty, many[2].ID: other,
	} {
		var got outbox.Event
		err := tx.QueryRow(t.Context(), `
			SELECT kind, coalesce(part, ''), headers, coalesce(media, ''), body FROM app."Our Events" WHERE no = $1`, id).
			Scan(&got.Type, &got.Key, &got.Headers, &got.ContentType, &got.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if got.Type != want.Type || got.Key != want.Key || got.Headers["trace"] != want.Headers["trace"] ||
			got.ContentType != want.ContentType || string(got.Payload) != string(want.Payload) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
