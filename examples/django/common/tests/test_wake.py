"""Waking the relay."""
from django.db import connection, connections, transaction
from django.test import TransactionTestCase

from common.models import OutboxEvent
from common.services import emit_event
from common.tests.live import LiveTestCase
from common.tests.support import await_that, thread


class Listener:
    """A session that listens as the relay does."""

    def __init__(self):
        self.session = connection.copy()
        self.session.ensure_connection()
        with self.session.cursor() as cursor:
            cursor.execute("SELECT 'outbox_' || %s::regclass::oid", [OutboxEvent._meta.db_table])
            self.channel = cursor.fetchone()[0]
            cursor.execute(f'LISTEN "{self.channel}"')

    def heard(self):
        """Return the payloads of all notifications since the last call."""
        with self.session.cursor() as cursor:
            cursor.execute("SELECT 1")  # the server sends notifications along with an answer
        notifications = self.session.connection.notifies
        payloads = [n.payload for n in notifications if n.channel == self.channel]
        notifications.clear()
        return payloads

    def close(self):
        self.session.close()


def emit():
    emit_event("UploadFile", 42, "file.stored", {})


class WakeTest(TransactionTestCase):
    def setUp(self):
        self.listener = Listener()
        self.addCleanup(self.listener.close)

    def test_after_the_commit(self):
        """One wake-up for all events of a transaction, and none for what is rolled back."""
        with transaction.atomic():
            with self.assertRaises(ZeroDivisionError), transaction.atomic():
                emit()
                1 / 0
            emit()
            emit()
            self.assertEqual(self.listener.heard(), [])
        self.assertEqual(self.listener.heard(), [""])
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            emit()
            1 / 0
        self.assertEqual(self.listener.heard(), [])

    def test_the_request_does_not_fail(self):
        """The connection breaks after the commit and before the wake-up."""

        def end_session(pid):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
            await_that("the end of the session", lambda: not session_exists(pid))

        with self.assertLogs("common.services.wake", "WARNING"), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pid = cursor.fetchone()[0]

            def cut():
                with thread(end_session, pid) as cutting:
                    cutting.result()

            transaction.on_commit(cut)
            emit()
        connections.close_all()
        self.assertEqual(OutboxEvent.objects.count(), 1)


def session_exists(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid])
        return cursor.fetchone()[0] > 0


class RelayListensTest(LiveTestCase):
    def test_the_channel_is_the_relays(self):
        """A relay notifies itself when it begins to listen: we hear that on the channel that we wake it on."""
        listener = Listener()
        self.addCleanup(listener.close)
        with self.relay():
            await_that("the relay to notify itself", lambda: any(listener.heard()))
