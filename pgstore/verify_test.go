package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

// verifyCase is a table that is not quite what the layout says.
type verifyCase struct {
	layout string
	// alter changes the table, and tweak the layout.
	alter string
	tweak func(*layouts.Layout)
	// words are of the refusal; empty if the table works. onlyEmit is set if relays work.
	words    string
	onlyEmit bool
}

// TestVerify changes tables, and compares the verdict with what becomes of a relay's and an
// emitter's work there: what is refused does not work, and what is not refused does.
func TestVerify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]verifyCase{
		"doorito":     {layout: "doorito"},
		"modkit":      {layout: "modkit"},
		"packfinderz": {layout: "packfinderz"},
		"ours":        {layout: "ours"},

		// Ids.
		"integer id": {
			layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER id TYPE bigint USING ('x' || substr(md5(id::text), 1, 12))::bit(48)::bigint`,
			words: `has column "id" for id as bigint: uuid is needed`,
		},
		"text id":         {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER id TYPE text`, words: `"id" for id as text: uuid is needed`},
		"char(36) id":     {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER id TYPE char(36)`, words: `character(36): uuid is needed`},
		"id of a domain":  {layout: "modkit", alter: `CREATE DOMAIN event_id AS uuid; ALTER TABLE modkit_outbox_events ALTER id TYPE event_id`},
		"text tenant":     {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER tenant_id TYPE text`, words: `"tenant_id" for tenantId as text: uuid is needed`},
		"domain tenant":   {layout: "modkit", alter: `CREATE DOMAIN deep AS uuid; CREATE DOMAIN tenant AS deep; ALTER TABLE modkit_outbox_events ALTER tenant_id TYPE tenant`},
		"text owner":      {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER locked_by TYPE text`, words: `say "type": "text" in the layout`},
		"text owner said": {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER locked_by TYPE varchar(36)`, tweak: func(l *layouts.Layout) { l.Columns.LockedBy.Type = "text" }},
		"char owner":      {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER owner TYPE char(40)`},
		"short owner":     {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER owner TYPE varchar(20)`, words: `a worker's id has 36 characters`},
		"uuid owner":      {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER owner TYPE uuid USING owner::uuid`, words: `"owner" for lockedBy as uuid: text is needed`},
		"owner not null":  {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER owner SET DEFAULT '', ADD CHECK (true); UPDATE app."Our Events" SET owner = ''; ALTER TABLE app."Our Events" ALTER owner SET NOT NULL`, words: `a row that nobody holds has none`},

		// Times and numbers.
		"text due":              {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER next_attempt_at TYPE text`, words: `"next_attempt_at" for nextAttemptAt as text: timestamptz is needed`},
		"due without zone":      {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER next_attempt_at TYPE timestamp`},
		"lease without zone":    {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER locked_until TYPE timestamp, ALTER created_at TYPE timestamp, ALTER updated_at TYPE timestamp`},
		"epoch created":         {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER created_at DROP DEFAULT, ALTER created_at TYPE bigint USING 1`, words: `"created_at" for createdAt as bigint: timestamptz is needed`},
		"text delivered":        {layout: "packfinderz", alter: `ALTER TABLE outbox_events ALTER published_at TYPE text`, words: `"published_at" for deliveredAt as text: timestamptz is needed`},
		"due not null":          {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER next_attempt_at SET NOT NULL`, words: `it takes no NULL; say "notNull": true`},
		"due not null, said":    {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER next_attempt_at SET NOT NULL`, tweak: func(l *layouts.Layout) { l.Columns.NextAttemptAt.NotNull = true }},
		"due of a domain":       {layout: "doorito", alter: `CREATE DOMAIN due AS timestamptz NOT NULL; ALTER TABLE outbox_event ALTER next_attempt_at TYPE due`, words: `it takes no NULL; say "notNull": true`},
		"small attempts":        {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER attempts TYPE smallint`},
		"large attempts":        {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER attempts TYPE bigint, ALTER max_attempts TYPE smallint`},
		"text attempts":         {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER attempts DROP DEFAULT, ALTER attempts TYPE text`, words: `"attempts" for attempts as text: integer is needed`},
		"text maximum":          {layout: "doorito", alter: dropPartial("outbox_event") + `ALTER TABLE outbox_event ALTER max_attempts DROP DEFAULT, ALTER max_attempts TYPE text`, words: `"max_attempts" for maxAttempts as text: integer is needed`},
		"generated updated at":  {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events DROP updated_at, ADD updated_at timestamptz GENERATED ALWAYS AS (created_at) STORED`, words: `it is generated, and has to be written`},
		"generated dedupe key":  {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events DROP dedupe_key, ADD dedupe_key text GENERATED ALWAYS AS (namespace || topic) STORED`, words: `it is generated, and has to be written`, onlyEmit: true},
		"delivered at not null": {layout: "doorito", alter: `UPDATE outbox_event SET delivered_at = now(); ALTER TABLE outbox_event ALTER delivered_at SET NOT NULL`, words: `a row that waits has none`, onlyEmit: true},

		// Texts.
		"varchar topic":           {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER topic TYPE varchar(50), ALTER namespace TYPE char(20)`},
		"domain type":             {layout: "doorito", alter: `CREATE DOMAIN kind AS varchar(90); ALTER TABLE outbox_event ALTER event_type TYPE kind`},
		"enum type":               {layout: "doorito", alter: `CREATE TYPE kind AS ENUM ('file.stored'); ALTER TABLE outbox_event ALTER event_type TYPE kind USING event_type::kind`, words: `name the type as "enum"`, onlyEmit: true},
		"enum type, said":         {layout: "doorito", alter: `CREATE TYPE kind AS ENUM ('file.stored'); ALTER TABLE outbox_event ALTER event_type TYPE kind USING event_type::kind`, tweak: func(l *layouts.Layout) { l.Columns.Type.Enum = "kind" }},
		"another enum":            {layout: "ours", alter: `CREATE TYPE app.other AS ENUM ('made'); ALTER TABLE app."Our Events" ALTER kind TYPE app.other USING kind::text::app.other`, words: `enum "app"."kind" is needed`, onlyEmit: true},
		"text for an enum":        {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER kind TYPE text`},
		"uuid aggregate":          {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER aggregate_id TYPE uuid USING gen_random_uuid()`, words: `say "type": "uuid" in the layout`, onlyEmit: true},
		"integer aggregate":       {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER aggregate_id TYPE integer USING 42`, words: `"aggregate_id" for aggregateId as integer: text is needed`, onlyEmit: true},
		"text for a uuid":         {layout: "packfinderz", alter: `DROP TRIGGER outbox_dlq_append_only ON outbox_dlq; ALTER TABLE outbox_dlq ALTER aggregate_id TYPE text; DROP TRIGGER outbox_events_append_only ON outbox_events; ALTER TABLE outbox_events ALTER aggregate_id TYPE text`},
		"jsonb error":             {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER last_error TYPE jsonb USING to_jsonb(last_error)`, words: `"last_error" for lastError as jsonb: text is needed`},
		"short error":             {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER error_message TYPE varchar(255)`, words: `say "maxLength": 255 in the layout`},
		"short error, said":       {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER error_message TYPE varchar(255)`, tweak: func(l *layouts.Layout) { l.Columns.LastError.MaxLength = 255 }},
		"short error of a lease":  {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER last_error TYPE varchar(20)`, tweak: func(l *layouts.Layout) { l.Columns.LastError.MaxLength = 20 }},
		"error not null":          {layout: "modkit", alter: `UPDATE modkit_outbox_events SET last_error = ''; ALTER TABLE modkit_outbox_events ALTER last_error SET NOT NULL`, words: `say "notNull": true`, onlyEmit: true},
		"a column of the team":    {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ADD colour text, ADD size int NOT NULL DEFAULT 1, ADD no bigserial, ADD half bigint GENERATED ALWAYS AS IDENTITY`},
		"a column without values": {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ADD colour text NOT NULL DEFAULT ''; ALTER TABLE modkit_outbox_events ALTER colour DROP DEFAULT`, words: `has column "colour", which takes no NULL, has no default`, onlyEmit: true},

		// Payloads and headers.
		"text payload":         {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER payload TYPE text`},
		"json payload":         {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER payload TYPE json`},
		"json payload as text": {layout: "doorito", tweak: func(l *layouts.Layout) { l.Columns.Payload.Type = "text" }, words: `say "type": "jsonb" in the layout`, onlyEmit: true},
		"bytes for JSON":       {layout: "modkit", alter: `ALTER TABLE modkit_outbox_events ALTER payload TYPE bytea USING convert_to(payload::text, 'UTF8')`, words: `say "type": "bytea" in the layout`},
		"text for bytes":       {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER body TYPE text USING convert_from(body, 'UTF8'); ALTER TABLE app.letters ALTER body TYPE text`, words: `"body" for payload as text: bytea is needed`, onlyEmit: true},
		"text headers":         {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER headers TYPE text`},
		"array headers":        {layout: "ours", alter: `ALTER TABLE app."Our Events" ALTER headers TYPE text[] USING '{a}'`, words: `"headers" for headers as text[]: jsonb is needed`},

		// States.
		"enum states":              {layout: "doorito", alter: statesOf("outbox_event", "pending", "delivered", "failed")},
		"enum lacks a state":       {layout: "doorito", alter: statesOf("outbox_event", "pending", "delivered"), words: `it has no value "failed"`},
		"enum states of leases":    {layout: "modkit", alter: statesOf("modkit_outbox_events", "pending", "processing", "delivered", "dead"), words: `name the type as "enum"`},
		"enum states, said":        {layout: "modkit", alter: statesOf("modkit_outbox_events", "pending", "processing", "delivered", "dead"), tweak: func(l *layouts.Layout) { l.Columns.Status.Enum = "state" }},
		"short states":             {layout: "doorito", alter: `ALTER TABLE outbox_event ALTER status TYPE varchar(8)`, words: `state "delivered" has 9 characters`},
		"numbers as states":        {layout: "doorito", alter: numberedStates("outbox_event", `WHEN 'pending' THEN 0`), tweak: numbered},
		"numbers as leased states": {layout: "modkit", alter: numberedStates("modkit_outbox_events", `WHEN 'pending' THEN 0`), tweak: numbered, words: `text or an enum is needed`},
		"numbers for words":        {layout: "doorito", alter: numberedStates("outbox_event", `WHEN 'pending' THEN 0`), words: `state "pending" is no number`},
		"array states":             {layout: "doorito", alter: dropPartial("outbox_event") + `ALTER TABLE outbox_event ALTER status DROP DEFAULT, ALTER status TYPE text[] USING ARRAY[status]`, words: `text or an enum is needed`},

		// Enums of the contract.
		"text for every enum": {layout: "packfinderz", alter: textForEnums},

		// Dead letters.
		"text event of a letter":      {layout: "packfinderz", alter: `DROP TRIGGER outbox_dlq_append_only ON outbox_dlq; ALTER TABLE outbox_dlq ALTER event_id TYPE text`, words: `"event_id" for eventId as text: uuid is needed`},
		"text id of a letter":         {layout: "ours", alter: `ALTER TABLE app.letters ALTER id TYPE text`},
		"reasons lack one":            {layout: "packfinderz", alter: reasonsBefore, words: `it has no value invalid_row`},
		"text reasons of a said enum": {layout: "packfinderz", alter: `DROP TRIGGER outbox_dlq_append_only ON outbox_dlq; ALTER TABLE outbox_dlq ALTER error_reason TYPE text`},
		"enum reasons":                {layout: "ours", alter: `CREATE TYPE app.why AS ENUM ('terminal', 'rejected'); ALTER TABLE app.letters ALTER reason TYPE app.why USING reason::app.why`, words: `name the type as "enum"`},
		"short reasons":               {layout: "ours", alter: `ALTER TABLE app.letters ALTER reason TYPE varchar(6)`, words: `has 12 characters`},
		"text failed":                 {layout: "ours", alter: `ALTER TABLE app.letters ALTER failed TYPE text`, words: `"failed" for failedAt as text: timestamptz is needed`},
		"retried not null":            {layout: "ours", alter: `ALTER TABLE app.letters ALTER retried SET DEFAULT now(), ALTER retried SET NOT NULL`, words: `a letter that nobody retried has none`},
		"another payload":             {layout: "ours", alter: `ALTER TABLE app.letters ALTER body TYPE jsonb USING '{}'`, words: `"body" for payload as jsonb: bytea is needed, as in the outbox table`},
		"a letter wants more":         {layout: "ours", alter: `ALTER TABLE app.letters ADD who text NOT NULL`, words: `a dead event would have no letter`},
		"a letter has more":           {layout: "ours", alter: `ALTER TABLE app.letters ADD who text, ADD no bigserial`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

// textForEnums makes text of the enums of both tables.
const textForEnums = `DROP TRIGGER outbox_dlq_append_only ON outbox_dlq; DROP TRIGGER outbox_events_append_only ON outbox_events;
	ALTER TABLE outbox_events ALTER event_type TYPE text, ALTER aggregate_type TYPE text;
	ALTER TABLE outbox_dlq ALTER event_type TYPE text, ALTER aggregate_type TYPE text, ALTER error_reason TYPE text;`

// statesOf makes the status of a table an enum.
func statesOf(table string, states ...string) string {
	return dropPartial(table) + fmt.Sprintf(`CREATE TYPE state AS ENUM ('%s'); ALTER TABLE %s ALTER status DROP DEFAULT, ALTER status TYPE state USING status::state;`,
		strings.Join(states, "', '"), table)
}

func numberedStates(table, states string) string {
	return dropPartial(table) + fmt.Sprintf(`ALTER TABLE %s ALTER status DROP DEFAULT, ALTER status TYPE int USING CASE status %s END;`, table, states)
}

// numbered are states that are numbers.
func numbered(l *layouts.Layout) {
	states := layouts.States{Pending: "0", Delivered: "2", Dead: "3"}
	if l.States.Processing != "" {
		states.Processing = "1"
	}
	l.States = &states
}

// dropPartial drops a table's indexes and checks whose conditions name a status: they keep its type.
func dropPartial(table string) string {
	return fmt.Sprintf(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = '%[1]s'::regclass AND indpred IS NOT NULL LOOP EXECUTE 'DROP INDEX ' || name; END LOOP;
		FOR name IN SELECT quote_ident(conname) FROM pg_constraint WHERE conrelid = '%[1]s'::regclass AND contype = 'c' LOOP EXECUTE 'ALTER TABLE %[1]s DROP CONSTRAINT ' || name; END LOOP;
		END $$; `, table)
}

// reasonsBefore makes the reasons those of a table whose last migration was not applied.
const reasonsBefore = `DROP TRIGGER outbox_dlq_append_only ON outbox_dlq;
	ALTER TABLE outbox_dlq ALTER error_reason TYPE text; DROP TYPE outbox_dlq_reason_enum;
	CREATE TYPE outbox_dlq_reason_enum AS ENUM ('max_attempts', 'unknown_event_type', 'invalid_payload', 'invalid_aggregate', 'payload_too_large', 'rejected', 'terminal');
	ALTER TABLE outbox_dlq ALTER error_reason TYPE outbox_dlq_reason_enum USING error_reason::outbox_dlq_reason_enum`

func (c verifyCase) check(t *testing.T) {
	t.Helper()
	h := newHarness(t, c.layout)
	events := make([]outbox.Event, 5)
	for i := range events {
		events[i] = h.fullEvent()
	}
	h.emit(t, events...)
	if c.alter != "" {
		pgtest.Exec(t, h.pool, c.alter)
	}
	layout := h.layout
	if c.tweak != nil {
		c.tweak(&layout)
	}
	relays, emits := pgstore.Verify(t.Context(), h.pool, layout), pgstore.VerifyEmit(t.Context(), h.pool, layout)
	for verdict, refused := range map[error]bool{relays: c.words != "" && !c.onlyEmit, emits: c.words != ""} {
		var mismatch *pgstore.MismatchError
		switch {
		case !refused && verdict != nil:
			t.Errorf("the table works and is refused: %v", verdict)
		case refused && (!errors.Is(verdict, pgstore.ErrMismatch) || !errors.As(verdict, &mismatch) || !strings.Contains(verdict.Error(), c.words)):
			t.Errorf("the verdict is %v; want %q", verdict, c.words)
		}
	}
	// What happens where nobody asks.
	h.layout = layout
	if err := h.relay(t, events[0].Payload); (err != nil) != (c.words != "" && !c.onlyEmit) {
		t.Errorf("a relay's work ends with %v", err)
	}
	if err := h.tryEmit(t); (err != nil) != (c.words != "") && (c.onlyEmit || c.words == "") {
		t.Errorf("an emitter's work ends with %v", err)
	}
}

// fullEvent is an event that has all that the layout has columns for.
func (h *harness) fullEvent() outbox.Event {
	event := h.event()
	switch h.layout.Name {
	case "modkit":
		event.TenantID = uuid.New()
		event.DedupeKey = event.TenantID.String() + "/" + uuid.NewString()
	case "ours":
		event.Headers, event.ContentType = map[string]string{"trace": "1"}, "text/plain"
	}
	return event
}

// tryEmit emits an event twice, which has to find the first, and reads it.
func (h *harness) tryEmit(t *testing.T) error {
	t.Helper()
	emitter, err := outboxpgx.New(h.layout, outbox.EmitConfig{})
	if err != nil {
		return err
	}
	event := h.fullEvent()
	if h.layout.Columns.AggregateID.Type == "uuid" {
		event.AggregateID = uuid.NewString()
	}
	event.ID = uuid.New()
	for range 2 {
		err := emitter.InTx(t.Context(), h.pool, func(tx pgx.Tx) error {
			_, err := emitter.Emit(t.Context(), tx, event)
			return err
		})
		if err != nil {
			return err
		}
	}
	store, err := pgstore.New(h.pool, h.layout, pgstore.Config{MaxAttempts: 100})
	if err != nil {
		return err
	}
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
	if err != nil {
		return err
	}
	defer batch.Abandon()
	for _, message := range batch.Messages() {
		if message.ID == event.ID && !sameJSON(message.Payload, event.Payload) {
			return fmt.Errorf("the payload is %s", message.Payload)
		}
	}
	return nil
}

// sameJSON compares payloads that jsonb may have spelt its own way.
func sameJSON(a, b []byte) bool {
	plain := func(doc []byte) string { return strings.ReplaceAll(string(doc), " ", "") }
	return plain(a) == plain(b)
}

// relay does all that a relay and a person do with events that are there, and returns the first
// error, or how a message was garbled.
func (h *harness) relay(t *testing.T, payload []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store, err := pgstore.New(h.pool, h.layout, pgstore.Config{MaxAttempts: 2})
	if err != nil {
		return err
	}
	long := strings.Repeat("é", 1000)
	var dead uuid.UUID
	for _, outcome := range []outbox.Outcome{
		{Kind: outbox.Delivered},
		{Kind: outbox.Failed, Error: long, Delay: time.Hour},
		{Kind: outbox.Died, Error: long, Reason: outbox.ReasonInvalidRow},
		{Kind: outbox.Released},
	} {
		batch, err := store.Claim(ctx, outbox.ClaimRequest{Limit: 1, Closed: outbox.ClosedRoutes{Topics: []string{"closed"}}})
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if len(batch.Messages()) != 1 {
			batch.Abandon()
			return errors.New("nothing was claimed")
		}
		message := batch.Messages()[0]
		if message.Invalid != nil {
			batch.Abandon()
			return message.Invalid
		}
		if !sameJSON(message.Payload, payload) {
			batch.Abandon()
			return fmt.Errorf("the payload is %s", message.Payload)
		}
		if outcome.Kind == outbox.Died {
			dead = message.ID
		}
		err = batch.Renew(ctx)
		if err == nil {
			_, err = batch.Settle(ctx, []outbox.Outcome{outcome})
		}
		batch.Abandon()
		if err != nil {
			return fmt.Errorf("settle as %s: %w", outcome.Kind, err)
		}
	}
	if retried, err := store.Retry(ctx, dead); err != nil || len(retried) != 1 {
		return fmt.Errorf("retried %v: %w", retried, errors.Join(err, errors.New("want one")))
	}
	if _, err := store.Stats(ctx); err != nil {
		return fmt.Errorf("stats: %w", err)
	}
	if _, err := store.Sweep(ctx); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	purge := outbox.Purge{Retention: time.Hour, BatchSize: 10}
	if h.layout.DeadLetter != nil {
		purge.DeadLetterRetention = time.Hour
	}
	if _, err := store.Purge(ctx, purge); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}

// TestVerifyLists names every difference, once.
func TestVerifyLists(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "packfinderz")
	pgtest.Exec(t, h.pool, `DROP TRIGGER outbox_dlq_append_only ON outbox_dlq;
		ALTER TABLE outbox_events DROP COLUMN last_error, DROP COLUMN attempt_count, ADD COLUMN colour text NOT NULL;
		ALTER TABLE outbox_dlq DROP COLUMN failed_at, DROP COLUMN retried_at`)
	list, err := pgstore.Mismatches(t.Context(), h.pool, h.layout)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, m := range list {
		columns = append(columns, fmt.Sprint(m.Table, ".", m.Column, " ", m.OnlyEmit))
	}
	want := `["outbox_events".attempt_count false "outbox_events".last_error false "outbox_events".colour true "outbox_dlq".failed_at false "outbox_dlq".retried_at false]`
	if fmt.Sprint(columns) != want {
		t.Errorf("found %v, want %s", columns, want)
	}
	if err := pgstore.Verify(t.Context(), h.pool, h.layout); err == nil || !strings.HasSuffix(err.Error(), "; and 1 more, which outbox doctor lists") {
		t.Errorf("%v", err)
	}
	pgtest.Exec(t, h.pool, `DROP TABLE outbox_dlq`)
	if err := pgstore.Verify(t.Context(), h.pool, h.layout); !errors.Is(err, pgstore.ErrMismatch) || !strings.Contains(err.Error(), `there is no table "outbox_dlq"`) {
		t.Errorf("%v", err)
	}
}

// TestVerifyPlace refuses what is no plain table: of partitions, a claim and a purge would take rows
// that only have the same place.
func TestVerifyPlace(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, shipped := range shipped.All() {
		files, err := shipped.Migrations(shipped.Layout)
		if err != nil {
			t.Fatal(err)
		}
		pgtest.Migrate(t, pool, "", files)
		table := pgx.Identifier{shipped.Layout.Table}.Sanitize()
		pgtest.Exec(t, pool, fmt.Sprintf(`CREATE VIEW a_view AS SELECT * FROM %[1]s; CREATE TABLE parts (LIKE %[1]s) PARTITION BY HASH (id);
			CREATE TABLE part_0 PARTITION OF parts FOR VALUES WITH (modulus 1, remainder 0);
			CREATE TABLE family (LIKE %[1]s); CREATE TABLE child () INHERITS (family);
			CREATE TABLE alone (LIKE %[1]s); CREATE TABLE left_it () INHERITS (alone); DROP TABLE left_it`, table))
		for place, words := range map[string]string{
			shipped.Layout.Table: "", "part_0": "", "child": "", "alone": "",
			"a_view": "is no table but a view", "parts": "has partitions or children", "family": "has partitions or children",
		} {
			layout := shipped.Layout
			layout.Table = place
			err := pgstore.Verify(t.Context(), pool, layout)
			if (err == nil) != (words == "") || err != nil && (!errors.Is(err, pgstore.ErrMismatch) || !strings.Contains(err.Error(), words)) {
				t.Errorf("layout %s on %s: %v; want %q", layout.Name, place, err, words)
			}
		}
		pgtest.Exec(t, pool, `DROP VIEW a_view; DROP TABLE parts, family, alone CASCADE`)
	}
}

// TestVerifyRetriedLetters has a layout leave out what the table has: each letter would count as open, and the events that
// people had retried as dead.
func TestVerifyRetriedLetters(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "packfinderz")
	layout := h.layout
	letters := *layout.DeadLetter
	letters.Columns.RetriedAt = layouts.Column{}
	layout.DeadLetter = &letters
	if err := pgstore.Verify(t.Context(), h.pool, layout); err == nil || !strings.Contains(err.Error(), `"retried_at"`) {
		t.Errorf("got %v, want an error that names the column", err)
	}
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_dlq RENAME retried_at TO noticed_at`)
	if err := pgstore.Verify(t.Context(), h.pool, layout); err != nil {
		t.Errorf("a table without the column: %v", err)
	}
}

// TestVerifyKept has tables that would lose events, or hide them.
func TestVerifyKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, words string }{
		"unlogged": {`ALTER TABLE outbox_event SET UNLOGGED`, "is UNLOGGED"},
		"hidden":   {`ALTER TABLE outbox_event ENABLE ROW LEVEL SECURITY; GRANT ALL ON outbox_event TO PUBLIC`, "row-level security"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, "doorito")
			pgtest.Exec(t, h.pool, c.sql)
			err := pgstore.Verify(t.Context(), pgtest.AsRole(t, h.pool), h.layout)
			if !errors.Is(err, pgstore.ErrMismatch) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v, want %q", err, c.words)
			}
		})
	}
}
