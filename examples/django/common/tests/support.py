"""What the tests share: waiting for conditions, threads with connections of their own, handlers for a while."""
import collections
import concurrent.futures
import contextlib
import time
from unittest import mock

from django.db import connection, connections

from common import registry

# No measure of speed: it limits a wait for something that must happen.
PATIENCE = 60


def await_that(what, holds):
    """Return what holds returns as soon as that is true."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


@contextlib.contextmanager
def thread(function, *args):
    """Run a function beside the test, with a connection of its own; yield its future."""

    def call():
        try:
            return function(*args)
        finally:
            connections.close_all()

    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        yield pool.submit(call)


def someone_waits_for_a_lock():
    """Tell whether another session of the database waits for ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0] > 0


@contextlib.contextmanager
def handling(**handlers):
    """Replace all handlers for a while. An underscore in a name stands for the dot of a type."""
    by_type = {name.replace("_", "."): [function] for name, function in handlers.items()}
    with mock.patch.object(registry, "_handlers", collections.defaultdict(list, by_type)):
        yield
