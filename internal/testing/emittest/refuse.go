package emittest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// wantRefused checks that an event was refused for a field, in words that say so.
func wantRefused(b *bed, err error, field, words string) {
	b.Helper()
	var refused *outbox.EventError
	if !errors.As(err, &refused) || !errors.Is(err, outbox.ErrInvalidEvent) {
		b.Errorf("got %v, want %s refused", err, field)
		return
	}
	if refused.Field != field || !strings.Contains(refused.Problem, words) {
		b.Errorf("got %q, want %s refused with %q", err, field, words)
	}
}

// testRefusals tries what the target cannot take. All of it runs in one transaction,
// which still commits: nothing reached the database.
func testRefusals(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	tx := b.begin(e)
	tenant := uuid.New()
	long := strings.Repeat("x", 2000)
	type refusal struct {
		field, words string
		change       func(*outbox.Event)
	}
	cases := []refusal{{"payload", "nil", func(ev *outbox.Event) { ev.Payload = nil }}}
	if !b.place.raw {
		cases = append(cases, refusal{"payload", "not valid JSON", func(ev *outbox.Event) { ev.Payload = []byte{} }})
	}
	if !b.place.ordered {
		cases = append(cases,
			refusal{"headers", "no column", func(ev *outbox.Event) { ev.Headers = map[string]string{"a": "b"} }},
			refusal{"content type", "no column", func(ev *outbox.Event) { ev.ContentType = "text/plain" }},
			refusal{"key", "no column", func(ev *outbox.Event) { ev.Key = "k" }})
	}
	if b.place.tenants {
		cases = append(cases,
			refusal{"dedupe key", "limit is 1024", func(ev *outbox.Event) { ev.DedupeKey = long }},
			refusal{"dedupe key", "tenant", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, "1/2" }},
			refusal{"dedupe key", "tenant", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, tenant.String() }},
			refusal{"dedupe key", "tenant", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, tenant.String()+"x/1" }},
			refusal{"dedupe key", "tenant", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, uuid.NewString()+"/1" }},
			refusal{"dedupe key", "tenant", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, "urn:uuid:"+tenant.String()+"/1" }})
		hex := strings.ReplaceAll(tenant.String(), "-", "")
		for _, spelling := range []string{tenant.String(), hex, strings.ToUpper(tenant.String()), strings.ToUpper(hex)} {
			event := b.event()
			event.TenantID, event.DedupeKey = tenant, spelling+"/turn/request"
			_, err := tx.Emit(b.Context(), event)
			b.must(err)
		}
	}
	switch b.place.name {
	case "packfinderz":
		cases = append(cases,
			refusal{"type", "empty", func(ev *outbox.Event) { ev.Type = "" }},
			refusal{"type", "knows only", func(ev *outbox.Event) { ev.Type = "ad_clicked" }},
			refusal{"aggregate type", "knows only", func(ev *outbox.Event) { ev.AggregateType = "cart" }},
			refusal{"aggregate id", "UUID", func(ev *outbox.Event) { ev.AggregateID = "42" }},
			refusal{"aggregate id", "UUID", func(ev *outbox.Event) { ev.AggregateID = "{" + uuid.NewString() + "}" }},
			refusal{"topic", "no column", func(ev *outbox.Event) { ev.Topic = "t" }},
			refusal{"not before", "no column", func(ev *outbox.Event) { ev.NotBefore = time.Now() }},
			refusal{"max attempts", "no column", func(ev *outbox.Event) { ev.MaxAttempts = 3 }},
			refusal{"tenant id", "no column", func(ev *outbox.Event) { ev.TenantID = tenant }})
	case "doorito":
		cases = append(cases,
			refusal{"type", "empty", func(ev *outbox.Event) { ev.Type = "" }},
			refusal{"type", "holds 100", func(ev *outbox.Event) { ev.Type = strings.Repeat("é", 101) }},
			refusal{"aggregate id", "empty", func(ev *outbox.Event) { ev.AggregateID = "" }},
			refusal{"dedupe key", "holds 255", func(ev *outbox.Event) { ev.DedupeKey = long[:256] }},
			refusal{"max attempts", "between 1", func(ev *outbox.Event) { ev.MaxAttempts = -1 }},
			refusal{"not before", "year", func(ev *outbox.Event) { ev.NotBefore = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) }})
	case "modkit":
		cases = append(cases,
			refusal{"namespace", "empty", func(ev *outbox.Event) { ev.Namespace = "" }},
			refusal{"topic", "empty", func(ev *outbox.Event) { ev.Topic = "" }},
			refusal{"topic", "NUL", func(ev *outbox.Event) { ev.Topic = "a\x00b" }},
			refusal{"topic", "UTF-8", func(ev *outbox.Event) { ev.Topic = "a\xff" }},
			refusal{"type", "no column", func(ev *outbox.Event) { ev.Type = "t" }})
	case "standard":
		cases = append(cases,
			refusal{"topic", "empty", func(ev *outbox.Event) { ev.Topic = "" }},
			refusal{"type", "empty", func(ev *outbox.Event) { ev.Type = "" }},
			refusal{"type", "limit is 255", func(ev *outbox.Event) { ev.Type = long[:256] }},
			refusal{"key", "limit is 1024", func(ev *outbox.Event) { ev.Key = long[:1025] }},
			refusal{"key", "NUL", func(ev *outbox.Event) { ev.Key = "a\x00b" }},
			refusal{"aggregate id", "UTF-8", func(ev *outbox.Event) { ev.AggregateType, ev.AggregateID = "a", "\xff" }},
			refusal{"headers", "limit is 65536", func(ev *outbox.Event) { ev.Headers = map[string]string{"a": strings.Repeat("x", 65536)} }},
			refusal{"headers", "empty name", func(ev *outbox.Event) { ev.Headers = map[string]string{"": "x"} }},
			refusal{"max attempts", "between 1", func(ev *outbox.Event) { ev.MaxAttempts = -1 }},
			refusal{"not before", "year", func(ev *outbox.Event) { ev.NotBefore = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) }})
	}
	for _, c := range cases {
		event := b.event()
		c.change(&event)
		_, err := tx.Emit(b.Context(), event)
		wantRefused(b, err, c.field, c.words)
		_, err = tx.EmitMany(b.Context(), []outbox.Event{b.event(), event})
		wantRefused(b, err, c.field, c.words)
		var refused *outbox.EventError
		if errors.As(err, &refused) && refused.Index != 1 {
			b.Errorf("%s: the second event was refused, the error says %d", c.field, refused.Index)
		}
	}
	b.must(tx.Rollback(b.Context()))
	tx = b.begin(e)
	_, err := tx.Emit(b.Context(), outbox.Event{})
	if err == nil {
		b.Fatal("an empty event was taken")
	}
	_, err = tx.Emit(b.Context(), b.event())
	b.must(err)
	b.must(tx.Commit(b.Context()))
	b.wantCount(1)
}

func testPayloadLimit(_ *testing.T, b *bed) {
	const limit = 4096
	e := b.emitter(outbox.EmitConfig{MaxPayload: limit})
	sized := func(n int) outbox.Event {
		event := b.event()
		event.Payload = []byte(`"` + strings.Repeat("x", n-2) + `"`)
		return event
	}
	tx := b.begin(e)
	for _, n := range []int{limit - 1, limit} {
		_, err := tx.Emit(b.Context(), sized(n))
		b.must(err)
	}
	_, err := tx.Emit(b.Context(), sized(limit+1))
	wantRefused(b, err, "payload", "the limit is 4096")
	b.must(tx.Commit(b.Context()))
	b.wantCount(2)

	// Unless set, the limit is 1 MiB.
	tx = b.begin(b.emitter(outbox.EmitConfig{}))
	_, err = tx.Emit(b.Context(), sized(outbox.DefaultMaxPayload))
	b.must(err)
	_, err = tx.Emit(b.Context(), sized(outbox.DefaultMaxPayload+1))
	wantRefused(b, err, "payload", "the limit is 1048576")
}

// testHostilePayloads sends what breaks other outboxes. What is refused is refused
// before the server sees it; what is taken is there afterwards.
func testHostilePayloads(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	refused := map[string]string{
		`{"a": "\u0000"}`:                          "U+0000",
		"{\"a\": \"\x00\"}":                        "not valid JSON",
		"{\"a\": \"\xff\"}":                        "UTF-8",
		`{"a": "\ud800"}`:                          "surrogate",
		`{"a": "\ud800\ud800"}`:                    "surrogate",
		`{"a": "\udc00"}`:                          "surrogate",
		`{"a": 1e999999}`:                          "number",
		`{"a": 1e-999999}`:                         "number",
		`{"a": ` + strings.Repeat("9", 9999) + `}`: "number",
		`{"a": 1`:                                  "not valid JSON",
		`{} {}`:                                    "not valid JSON",
		`NaN`:                                      "not valid JSON",
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000):   "nested",
		strings.Repeat("[", 90000) + strings.Repeat("]", 90000): "nested",
		"[" + strings.Repeat("1e400,", 50000) + "1]":            "numbers out",
	}
	taken := []string{
		`{}`, `[]`, `null`, `""`, `0`,
		`{"a": "\\u0000"}`, `{"a": "\ud83d\ude00"}`, `{"a": "\u0001\u001f"}`,
		`{"a": 1e308, "b": -1e-308, "c": 0.1000}`,
		`{"a": 123456789012345678901234567890.123456789}`,
		`{"a": 1, "a": 2}`,
		strings.Repeat("[", 900) + strings.Repeat("]", 900),
		`{"a": "'; DROP TABLE x; --", "b": "$$ $1 \\ \" {}"}`,
	}
	if b.place.raw {
		// Bytes are bytes, and there may be none.
		taken = append(slices.AppendSeq(taken, maps.Keys(refused)), "")
		clear(refused)
	}
	tx := b.begin(e)
	for payload, words := range refused {
		event := b.event()
		event.Payload = []byte(payload)
		_, err := tx.Emit(b.Context(), event)
		wantRefused(b, err, "payload", words)
	}
	var ids []uuid.UUID
	for _, payload := range taken {
		event := b.event()
		event.Payload = []byte(payload)
		one, err := tx.Emit(b.Context(), event)
		if err != nil {
			b.Fatalf("%.60s: %v", payload, err)
		}
		many, err := tx.EmitMany(b.Context(), []outbox.Event{event})
		if err != nil {
			b.Fatalf("%.60s: %v", payload, err)
		}
		ids = append(ids, one.ID, many[0].ID)
	}
	b.must(tx.Commit(b.Context()))
	for i, id := range ids {
		if got, want := b.payload(id), b.stored([]byte(taken[i/2])); !bytes.Equal(got, want) {
			b.Errorf("%.60q came back as %.60q", want, got)
		}
	}
}

// testTimeZones emits from sessions in three zones, at moments around a clock change.
func testTimeZones(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	berlin := time.FixedZone("CET", 3600)
	moments := []time.Time{
		time.Date(2030, 3, 31, 1, 59, 59, 0, berlin),
		time.Date(2030, 3, 31, 3, 0, 0, 0, time.FixedZone("CEST", 7200)),
		time.Date(2030, 10, 27, 2, 30, 0, 0, time.FixedZone("CEST", 7200)),
		time.Date(2030, 10, 27, 2, 30, 0, 0, berlin),
	}
	due := b.place.due != ""
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/St_Johns"} {
		for _, moment := range moments {
			event := b.event()
			if due {
				event.NotBefore = moment
			}
			var before, after, created time.Time
			b.must(b.pool.QueryRow(b.Context(), `SELECT clock_timestamp()`).Scan(&before))
			tx := b.begin(e)
			b.must(tx.Exec(b.Context(), `SET LOCAL TIME ZONE '`+zone+`'`))
			done, err := tx.Emit(b.Context(), event)
			b.must(err)
			b.must(tx.Commit(b.Context()))
			b.must(b.pool.QueryRow(b.Context(), `SELECT clock_timestamp()`).Scan(&after))
			b.must(b.pool.QueryRow(b.Context(), `SELECT created_at FROM `+b.table()+` WHERE id = $1`, done.ID).Scan(&created))
			if created.Before(before) || created.After(after) {
				b.Errorf("%s: created_at is %s, written between %s and %s", zone, created, before, after)
			}
			if !due {
				continue
			}
			var next time.Time
			b.must(b.pool.QueryRow(b.Context(), `SELECT `+b.place.due+` FROM `+b.table()+` WHERE id = $1`, done.ID).Scan(&next))
			if !next.Equal(moment) {
				b.Errorf("%s: due at %s, want %s", zone, next, moment)
			}
		}
	}
}

// testHostileNames runs the target under names that would hurt if they were not quoted.
func testHostileNames(_ *testing.T, b *bed) {
	b.place = b.place.elsewhere(`my "schema"; DROP TABLE x; --`, `Événements "d'ordre"; SELECT 1 --`)
	e := b.emitter(outbox.EmitConfig{})
	b.exec(`CREATE TABLE x ()`)
	tx := b.begin(e)
	event := b.event()
	event.ID = uuid.New()
	done, err := tx.EmitMany(b.Context(), []outbox.Event{event, event})
	b.must(err)
	if !done[1].AlreadyEnqueued {
		b.Fatalf("got %+v", done)
	}
	_, err = tx.Emit(b.Context(), b.event())
	b.must(err)
	b.must(tx.Commit(b.Context()))
	b.wantCount(2)
	b.exec(`DROP TABLE x`) // it is still there
}
