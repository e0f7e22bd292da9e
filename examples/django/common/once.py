"""Handling an event once: its handlers and the note of its id in one transaction."""
from django.db import DatabaseError, InternalError, ProgrammingError, connections, router, transaction

from common.models import ProcessedEvent
from common.registry import handlers_of


class NotReady(Exception):
    """The database takes nothing from this project: no event is at fault."""


class Undone(Exception):
    """The handlers returned, and what they did in the database will not be committed."""


def handle_once(event):
    """Call the handlers unless the event was handled before; return whether they were called."""
    connection = connections[router.db_for_write(ProcessedEvent)]
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        raise NotReady(f"the database is away: {error}") from error
    session = connection.connection
    try:
        with transaction.atomic(using=connection.alias):
            return note_and_call(event, connection)
    except (NotReady, Undone):
        raise
    except Exception as error:
        if connection.connection is not session or not connection.is_usable():
            # It has left, or restarted, while a handler was at work.
            raise NotReady(f"the database is away: {error}") from error
        raise


def note_and_call(event, connection):
    """Note the id, then call the handlers: a second delivery of the event waits for this transaction, and knows then."""
    try:
        _, new = ProcessedEvent.objects.using(connection.alias).get_or_create(event_id=event.id)
        ours = transaction_id(connection)
    except ProgrammingError as error:
        raise NotReady(f"run manage.py migrate: {error}") from error
    except DatabaseError as error:  # read-only, locked, full
        raise NotReady(f"the event's id cannot be noted: {error}") from error
    if new:
        for handler in handlers_of(event.type):
            handler(event)
        check_open(connection, ours)
    return new


def check_open(connection, ours):
    """Refuse to take for handled what is not going to be committed.

    A database error that a handler catches without a transaction.atomic() around what failed, a connection that it
    closes or a ROLLBACK of its own undoes the whole transaction; Django's atomic() then ends without an error.
    """
    caught = "it caught a database error: all was undone; put transaction.atomic() around what may fail"
    if connection.connection is None or connection.closed_in_transaction:
        raise Undone("it closed the database's connection: all was undone")
    if connection.needs_rollback:
        raise Undone(caught)
    try:
        still_ours = transaction_id(connection) == ours
    except InternalError as error:  # the transaction is aborted
        raise Undone(caught) from error
    if not still_ours:
        raise Undone("it ended the transaction of the event: leave that to transaction.atomic(); what it did may be undone")


def transaction_id(connection):
    """Return the number of the transaction that is open, or None if it has written nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT txid_current_if_assigned()")
        return cursor.fetchone()[0]
