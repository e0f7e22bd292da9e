"""Waking the relay after a commit.

The relay listens to a channel that is named after the oid of the outbox table, outbox_16412 for example; the payload of a
wake-up is empty. It is an accelerator: a relay that hears nothing finds the event by itself, within --poll.
"""
import functools
import logging

from django.db import connections, transaction

from common.models import OutboxEvent

logger = logging.getLogger(__name__)

NOTIFY = "SELECT pg_notify('outbox_' || to_regclass(%s)::oid::text, '')"


def wake_relay(using):
    """Notify the relays. The caller's change is committed by now, so that nothing here may fail him."""
    try:
        connection = connections[using]
        with connection.cursor() as cursor:
            cursor.execute(NOTIFY, [connection.ops.quote_name(OutboxEvent._meta.db_table)])
    except Exception:
        logger.warning("The relay was not woken. It will find the event when it looks by itself.", exc_info=True)


def wake_after_commit(using):
    """Wake the relay when the transaction commits, once, however many events it has.

    Not inside the transaction: NOTIFY takes a lock at commit that all transactions of the server share.
    """
    pending = transaction.get_connection(using).run_on_commit
    if not any(getattr(entry[1], "func", None) is wake_relay for entry in pending):
        transaction.on_commit(functools.partial(wake_relay, using), using=using)
