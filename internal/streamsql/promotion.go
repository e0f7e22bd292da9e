package streamsql

// Timeline is the timeline of a primary; it grows with every promotion.
const Timeline = `('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint`

// Promotion is what is known of the last promotion of a standby: when the first relay noticed it, NULL if none has; the
// timelines before and after it, zero if there was none; how many relays were alive before and after, and have compared what
// they delivered; how many events they had delivered that the server has not settled, which are published again, and how many
// that it does not have at all; whether a relay had delivered more, lately, than it remembers. What was being published when
// the primary went is in neither count. A standby has no timeline of its own.
const Promotion = `
SELECT CASE WHEN NOT unnoticed THEN promoted_at END, CASE WHEN unnoticed THEN timeline ELSE coalesce(promoted_from, 0) END,
  CASE WHEN unnoticed THEN now ELSE coalesce(promoted_to, 0) END, CASE WHEN unnoticed THEN 0 ELSE promoted_relays END,
  CASE WHEN unnoticed THEN 0 ELSE promoted_repeated END, CASE WHEN unnoticed THEN 0 ELSE promoted_orphaned END, promoted_more AND NOT unnoticed
FROM (
  SELECT o.*, t.now, coalesce(o.timeline <> 0 AND o.timeline < t.now, false) AS unnoticed
  FROM {settings} AS o, pg_control_system() AS n,
  LATERAL (SELECT CASE WHEN pg_is_in_recovery() THEN 0 WHEN o.system_identifier = n.system_identifier THEN ` + Timeline + ` ELSE 0 END AS now) AS t
) AS known`
