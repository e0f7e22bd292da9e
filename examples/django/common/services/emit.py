"""Emitting events, in the transaction of the change that they tell of."""
import json
import re

from django.core.serializers.json import DjangoJSONEncoder
from django.db import router, transaction
from django.db.models.functions import Now

from common.models import OutboxEvent
from common.services.wake import wake_after_commit
from common.uuid7 import uuid7

# The limit of the outbox's other producers. Django's receiver would refuse bodies of more than 2.5 MB.
MAX_PAYLOAD = 1 << 20

# The escape of the character that PostgreSQL's jsonb cannot hold, unless its backslash is itself escaped.
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

# What the caller names, and PostgreSQL has limits for.
NAMES = ("aggregate_type", "aggregate_id", "event_type", "idempotency_key")


def emit_event(aggregate_type, aggregate_id, event_type, payload, *, idempotency_key=None):
    """Write an event and return it; call it inside transaction.atomic().

    An event of this type with this key that exists already is returned instead: no error, and no second event. Without
    a key the event's id is its key.

    What PostgreSQL would refuse is refused before it is asked, by a ValidationError, ValueError or TypeError: the
    caller's transaction can go on.
    """
    using = router.db_for_write(OutboxEvent)
    if not transaction.get_connection(using).in_atomic_block:
        raise transaction.TransactionManagementError(
            "emit_event was called outside of a transaction: call it inside transaction.atomic(), beside the change "
            "that the event tells of, so that both are committed or neither"
        )
    if aggregate_id is None:
        raise ValueError("aggregate_id is None: save the record before the event that tells of it")
    check_payload(payload)
    event_id = uuid7()
    event = OutboxEvent(
        id=event_id,
        aggregate_type=aggregate_type,
        aggregate_id=str(aggregate_id),
        event_type=event_type,
        payload=payload,
        idempotency_key=str(event_id) if idempotency_key is None else str(idempotency_key),
        next_attempt_at=Now(),  # by the clock that the relay compares it with
    )
    check_names(event)
    events = OutboxEvent.objects.using(using)
    # ON CONFLICT DO NOTHING waits for another transaction that writes the same key, and leaves ours intact.
    events.bulk_create([event], ignore_conflicts=True)
    event = events.get(event_type=event.event_type, idempotency_key=event.idempotency_key)
    wake_after_commit(using)
    return event


def check_names(event):
    """Refuse names that are empty or too long, or that no text of PostgreSQL can hold."""
    event.clean_fields(exclude=[field.name for field in event._meta.fields if field.name not in NAMES])
    for name in NAMES:
        if b"\0" in getattr(event, name).encode():  # which also refuses half of a surrogate pair
            raise ValueError(f"{name} has a NUL character, which PostgreSQL cannot store")


def check_payload(payload):
    """Refuse what is not JSON, or not JSON that jsonb can hold."""
    if payload is None:
        raise ValueError("the payload is None; an event without one has {}")
    document = json.dumps(payload, cls=DjangoJSONEncoder, allow_nan=False, ensure_ascii=False).encode()
    if NUL.search(document):
        raise ValueError("the payload has a NUL character, which PostgreSQL cannot store")
    if len(document) > MAX_PAYLOAD:
        raise ValueError(f"the payload has {len(document)} bytes, more than {MAX_PAYLOAD}: store it elsewhere, and emit where")
