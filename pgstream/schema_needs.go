package pgstream

import (
	"slices"
	"strconv"
	"strings"
)

// need is something that this program asks of a stream's schema.
type need struct {
	// since is the migration that makes it, or last changed it.
	since int
	object
}

// slotMark stands for the number of a slot, where every slot has the object.
const slotMark = "{slot}"

func (n need) eachSlot() bool { return strings.Contains(n.name, slotMark) }

// expand is the object, or one for each slot.
func (n need) expand(slots int) []object {
	if !n.eachSlot() {
		return []object{n.object}
	}
	list := make([]object, slots)
	for slot := range list {
		list[slot] = n.object
		list[slot].name = strings.ReplaceAll(n.name, slotMark, strconv.Itoa(slot))
	}
	return list
}

// neededNames are the tables, sequences and functions that are looked for. Their columns, indexes,
// slots and triggers are found with them.
func neededNames() (names []string) {
	for _, n := range needs {
		switch n.kind {
		case "table", "sequence", "function":
			name, _, _ := strings.Cut(n.name, "(")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// needs is what the migrations make. TestNeeds compares it with them, in both directions, and prints
// the lines to add or remove: a migration adds its lines, with its number, and where it changes an
// object it changes the number of that line, too.
var needs = []need{
	{1, object{"table", "outbox_settings", ""}},
	{1, object{"column", "outbox_settings.created_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_settings.only_row", "boolean not null default"}},
	{1, object{"column", "outbox_settings.shards", "smallint not null"}},
	{1, object{"column", "outbox_settings.slot_seconds", "integer not null"}},
	{1, object{"column", "outbox_settings.slots", "smallint not null"}},
	{1, object{"column", "outbox_settings.system_identifier", "bigint"}},
	{1, object{"column", "outbox_settings.timeline", "bigint"}},
	{1, object{"index", "outbox_settings_pkey", "unique on outbox_settings USING btree (only_row)"}},
	{1, object{"table", "outbox_stream", "partitioned"}},
	{1, object{"slot", "outbox_stream_{slot}", ""}},
	{1, object{"sequence", "outbox_stream_seq", "bigint"}},
	{1, object{"column", "outbox_stream.aggregate_id", "text"}},
	{1, object{"column", "outbox_stream.aggregate_type", "text"}},
	{1, object{"column", "outbox_stream.content_type", "text"}},
	{1, object{"column", "outbox_stream.created_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_stream.headers", "jsonb"}},
	{1, object{"column", "outbox_stream.id", "uuid not null"}},
	{1, object{"column", "outbox_stream.key", "text collate \"C\""}},
	{1, object{"column", "outbox_stream.max_attempts", "integer"}},
	{1, object{"column", "outbox_stream.namespace", "text"}},
	{1, object{"column", "outbox_stream.not_before", "timestamp with time zone"}},
	{1, object{"column", "outbox_stream.payload", "bytea not null"}},
	{1, object{"column", "outbox_stream.seq", "bigint not null default"}},
	{1, object{"column", "outbox_stream.shard", "smallint not null"}},
	{1, object{"column", "outbox_stream.slot", "smallint not null default"}},
	{1, object{"column", "outbox_stream.tenant_id", "uuid"}},
	{1, object{"column", "outbox_stream.topic", "text not null"}},
	{1, object{"column", "outbox_stream.type", "text not null"}},
	{1, object{"column", "outbox_stream.xid", "xid8 not null default"}},
	{1, object{"index", "outbox_stream_shard_seq", "on outbox_stream USING btree (shard, seq)"}},
	{1, object{"index", "outbox_stream_xid_shard_seq", "on outbox_stream USING btree (xid, shard, seq)"}},
	{1, object{"table", "outbox_subscriptions", ""}},
	{1, object{"column", "outbox_subscriptions.created_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_subscriptions.destination", "text"}},
	{1, object{"column", "outbox_subscriptions.name", "text not null"}},
	{1, object{"column", "outbox_subscriptions.namespace", "text"}},
	{1, object{"column", "outbox_subscriptions.on_dead", "text not null default"}},
	{1, object{"column", "outbox_subscriptions.ready", "boolean not null default"}},
	{1, object{"column", "outbox_subscriptions.tenant_id", "uuid"}},
	{1, object{"column", "outbox_subscriptions.topics", "text[]"}},
	{1, object{"column", "outbox_subscriptions.types", "text[]"}},
	{1, object{"index", "outbox_subscriptions_pkey", "unique on outbox_subscriptions USING btree (name)"}},
	{1, object{"table", "outbox_shards", ""}},
	{1, object{"column", "outbox_shards.fence", "bigint not null default"}},
	{1, object{"column", "outbox_shards.hi", "bigint not null"}},
	{1, object{"column", "outbox_shards.locked_until", "timestamp with time zone"}},
	{1, object{"column", "outbox_shards.opened_at", "timestamp with time zone"}},
	{1, object{"column", "outbox_shards.owner", "uuid"}},
	{1, object{"column", "outbox_shards.parked_changes", "bigint not null default"}},
	{1, object{"column", "outbox_shards.pos", "bigint not null"}},
	{1, object{"column", "outbox_shards.q1", "bigint not null"}},
	{1, object{"column", "outbox_shards.q2", "bigint"}},
	{1, object{"column", "outbox_shards.s1", "pg_snapshot not null"}},
	{1, object{"column", "outbox_shards.s2", "pg_snapshot"}},
	{1, object{"column", "outbox_shards.shard", "smallint not null"}},
	{1, object{"column", "outbox_shards.subscription", "text not null"}},
	{1, object{"index", "outbox_shards_pkey", "unique on outbox_shards USING btree (subscription, shard)"}},
	{1, object{"foreign key", "outbox_shards.outbox_shards_subscription_fkey", "references outbox_subscriptions on delete cascade"}},
	{1, object{"table", "outbox_relays", ""}},
	{1, object{"column", "outbox_relays.alive_until", "timestamp with time zone not null"}},
	{1, object{"column", "outbox_relays.host", "text not null"}},
	{1, object{"column", "outbox_relays.pid", "integer not null"}},
	{1, object{"column", "outbox_relays.started_at", "timestamp with time zone not null default"}},
	{7, object{"column", "outbox_relays.waits_until", "timestamp with time zone"}},
	{1, object{"column", "outbox_relays.subscription", "text not null"}},
	{1, object{"column", "outbox_relays.worker", "uuid not null"}},
	{1, object{"index", "outbox_relays_pkey", "unique on outbox_relays USING btree (subscription, worker)"}},
	{1, object{"foreign key", "outbox_relays.outbox_relays_subscription_fkey", "references outbox_subscriptions on delete cascade"}},
	{1, object{"table", "outbox_parked", ""}},
	{1, object{"column", "outbox_parked.aggregate_id", "text"}},
	{1, object{"column", "outbox_parked.aggregate_type", "text"}},
	{1, object{"column", "outbox_parked.attempts", "integer not null default"}},
	{1, object{"column", "outbox_parked.changed_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_parked.content_type", "text"}},
	{1, object{"column", "outbox_parked.created_at", "timestamp with time zone not null"}},
	{1, object{"column", "outbox_parked.gates", "boolean not null"}},
	{1, object{"column", "outbox_parked.headers", "jsonb"}},
	{1, object{"column", "outbox_parked.id", "uuid not null"}},
	{1, object{"column", "outbox_parked.key", "text collate \"C\""}},
	{1, object{"column", "outbox_parked.last_error", "text"}},
	{1, object{"column", "outbox_parked.max_attempts", "integer"}},
	{1, object{"column", "outbox_parked.namespace", "text"}},
	{1, object{"column", "outbox_parked.next_attempt_at", "timestamp with time zone"}},
	{1, object{"column", "outbox_parked.not_before", "timestamp with time zone"}},
	{1, object{"column", "outbox_parked.parked_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_parked.payload", "bytea not null"}},
	{1, object{"column", "outbox_parked.reason", "text"}},
	{1, object{"column", "outbox_parked.replayed", "boolean not null default"}},
	{1, object{"column", "outbox_parked.seq", "bigint not null"}},
	{1, object{"column", "outbox_parked.shard", "smallint not null"}},
	{1, object{"column", "outbox_parked.state", "text not null"}},
	{1, object{"column", "outbox_parked.subscription", "text not null"}},
	{1, object{"column", "outbox_parked.tenant_id", "uuid"}},
	{1, object{"column", "outbox_parked.topic", "text not null"}},
	{1, object{"column", "outbox_parked.type", "text not null"}},
	{1, object{"index", "outbox_parked_due", "on outbox_parked USING btree (subscription, shard, next_attempt_at) WHERE (state = 'retry'::text)"}},
	{1, object{"index", "outbox_parked_key", "on outbox_parked USING btree (subscription, shard, key, seq) WHERE gates"}},
	{1, object{"index", "outbox_parked_pkey", "unique on outbox_parked USING btree (subscription, shard, seq)"}},
	{1, object{"foreign key", "outbox_parked.outbox_parked_subscription_fkey", "references outbox_subscriptions on delete cascade"}},
	{1, object{"table", "outbox_deliveries", ""}},
	{1, object{"column", "outbox_deliveries.from_seq", "bigint not null"}},
	{1, object{"column", "outbox_deliveries.part", "text not null"}},
	{1, object{"column", "outbox_deliveries.s1", "pg_snapshot"}},
	{1, object{"column", "outbox_deliveries.s2", "pg_snapshot"}},
	{1, object{"column", "outbox_deliveries.settled_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_deliveries.shard", "smallint not null"}},
	{1, object{"column", "outbox_deliveries.subscription", "text not null"}},
	{1, object{"column", "outbox_deliveries.to_seq", "bigint not null"}},
	{1, object{"column", "outbox_deliveries.worker", "uuid not null"}},
	{1, object{"index", "outbox_deliveries_seq", "on outbox_deliveries USING btree (subscription, shard, to_seq)"}},
	{1, object{"index", "outbox_deliveries_settled_at", "on outbox_deliveries USING btree (settled_at)"}},
	{1, object{"table", "outbox_dedupe", ""}},
	{1, object{"column", "outbox_dedupe.created_at", "timestamp with time zone not null default"}},
	{1, object{"column", "outbox_dedupe.dedupe_key", "text collate \"C\""}},
	{1, object{"column", "outbox_dedupe.id", "uuid not null"}},
	{1, object{"column", "outbox_dedupe.namespace", "text not null"}},
	{1, object{"column", "outbox_dedupe.topic", "text not null"}},
	{1, object{"index", "outbox_dedupe_created_at", "on outbox_dedupe USING btree (created_at)"}},
	{1, object{"index", "outbox_dedupe_key", "unique on outbox_dedupe USING btree (namespace, topic, dedupe_key) WHERE (dedupe_key IS NOT NULL)"}},
	{1, object{"index", "outbox_dedupe_pkey", "unique on outbox_dedupe USING btree (id)"}},
	{2, object{"function", "outbox_check_event(text, bytea, text, text, text, text, text, uuid, text, jsonb, text, timestamp with time zone, integer)", "returns void"}},
	{2, object{"function", "outbox_emit(text, jsonb, text, text, text, text, text, uuid, text, jsonb, text, timestamp with time zone, integer, uuid, boolean)", "returns uuid"}},
	{2, object{"function", "outbox_emit_bytes(text, bytea, text, text, text, text, text, uuid, text, jsonb, text, timestamp with time zone, integer, uuid, boolean)", "returns uuid"}},
	{2, object{"function", "outbox_lock_keys(text[])", "returns void"}},
	{2, object{"function", "outbox_new_id()", "returns uuid"}},
	{2, object{"function", "outbox_shard(text, uuid)", "returns smallint"}},
	{3, object{"index", "outbox_parked_id", "on outbox_parked USING btree (id)"}},
	{3, object{"index", "outbox_parked_state", "on outbox_parked USING btree (subscription, state, shard, seq) WHERE (state = ANY (ARRAY['dead'::text, 'held'::text]))"}},
	{4, object{"column", "outbox_parked.route", "text"}},
	{4, object{"index", "outbox_parked_route", "on outbox_parked USING btree (subscription, shard, route, seq) WHERE (state = 'stopped'::text)"}},
	{5, object{"table", "outbox_doubts", ""}},
	{5, object{"column", "outbox_doubts.evidence", "text not null"}},
	{5, object{"column", "outbox_doubts.found_at", "timestamp with time zone not null default"}},
	{5, object{"column", "outbox_doubts.seq", "bigint"}},
	{5, object{"column", "outbox_doubts.xid", "xid8"}},
	{5, object{"table", "outbox_history", ""}},
	{5, object{"column", "outbox_history.history", "uuid not null"}},
	{5, object{"column", "outbox_history.stamp", "bigint not null"}},
	{5, object{"column", "outbox_history.stamped_at", "timestamp with time zone not null default"}},
	{5, object{"column", "outbox_shards.awaits_repair", "boolean not null default"}},
	{5, object{"column", "outbox_shards.history", "uuid default"}},
	{5, object{"function", "outbox_current_history()", "returns uuid"}},
	{5, object{"function", "outbox_refuse_truncate()", "returns trigger"}},
	{5, object{"function", "outbox_stamp(regclass)", "returns uuid"}},
	{5, object{"trigger", "outbox_stream.outbox_refuse_truncate", "before truncate each statement calls outbox_refuse_truncate"}},
	{5, object{"trigger", "outbox_stream_{slot}.outbox_refuse_truncate", "before truncate each statement calls outbox_refuse_truncate"}},
	{6, object{"sequence", "outbox_generations", "bigint"}},
	{6, object{"column", "outbox_relays.generation", "bigint"}},
	{6, object{"column", "outbox_subscriptions.generation", "bigint not null default"}},
	{7, object{"column", "outbox_relays.lease_seconds", "double precision"}},
	{7, object{"column", "outbox_settings.promoted_at", "timestamp with time zone"}},
	{7, object{"column", "outbox_settings.promoted_from", "bigint"}},
	{7, object{"column", "outbox_settings.promoted_more", "boolean not null default"}},
	{7, object{"column", "outbox_settings.promoted_orphaned", "bigint not null default"}},
	{7, object{"column", "outbox_settings.promoted_relays", "integer not null default"}},
	{7, object{"column", "outbox_settings.promoted_repeated", "bigint not null default"}},
	{7, object{"column", "outbox_settings.promoted_to", "bigint"}},
	{8, object{"function", "outbox_schema_version()", "returns integer"}},
}
