-- All that the worker may do: write notifications. It reads events from Pub/Sub, never from outbox_events.
-- The tables' owner runs it, once there is a role packfinderz_worker.

GRANT INSERT (event_id, type, audience, store_id, license_id, status, reason, message) ON notifications TO packfinderz_worker;
-- To see that a notification is there already.
GRANT SELECT (event_id, audience) ON notifications TO packfinderz_worker;
