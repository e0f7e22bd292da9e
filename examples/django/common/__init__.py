"""The outbox, for every app of the project: emit_event, @handles, the receiver, the admin."""
