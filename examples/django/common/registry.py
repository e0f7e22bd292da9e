"""The handlers of events, by type."""
import collections
import dataclasses
import uuid


@dataclasses.dataclass(frozen=True)
class Event:
    """An event as it arrives, whoever has emitted it."""

    id: uuid.UUID
    type: str
    aggregate_type: str
    aggregate_id: str
    idempotency_key: str
    payload: object


_handlers = collections.defaultdict(list)


def handles(event_type):
    """Register a function for a type of event, in the module handlers of an app:

    @handles("file.stored")
    def make_thumbnail(event): ...

    It runs in a transaction that also notes the event's id. So what it does in the database is done once; what it does
    elsewhere, such as sending mail, may be repeated. An exception undoes all handlers of the event, and the relay tries
    it again.
    """

    if callable(event_type):
        raise TypeError('@handles needs a type of event: @handles("file.stored")')

    def register(function):
        _handlers[event_type].append(function)
        return function

    return register


def handlers_of(event_type):
    """Return the functions that are registered for a type."""
    return tuple(_handlers.get(event_type, ()))
