"""The receiver: whom it believes, what it answers, and that it handles an event once."""
import json
import threading
import time
import uuid
from unittest import mock

from django.db import DataError, IntegrityError, connection, connections
from django.test import Client, TransactionTestCase, override_settings
from django.urls import reverse

from common.models import ProcessedEvent
from common.signatures import sign
from common.tests.live import OTHER_SECRET, SECRET
from common.tests.support import await_that, handling, someone_waits_for_a_lock, thread
from uploads.models import Thumbnail


def post(payload=b'{"file_id": 42, "name": "cat.png"}', event_type="file.stored", event_id=None, secret=SECRET, **headers):
    """Post an event as the program does, from a client that has no CSRF token."""
    event_id, timestamp = str(event_id or uuid.uuid4()), str(int(time.time()))
    headers = {
        "HTTP_WEBHOOK_ID": event_id,
        "HTTP_WEBHOOK_TIMESTAMP": timestamp,
        "HTTP_WEBHOOK_SIGNATURE": sign(secret, event_id, timestamp, payload),
        "HTTP_OUTBOX_EVENT_TYPE": event_type,
        **headers,
    }
    client = Client(enforce_csrf_checks=True)
    return client.post(reverse("outbox-events"), payload, content_type="application/json", **headers)


def make_thumbnail(event):
    Thumbnail.objects.create(file_id=event.payload["file_id"], title=event.payload["name"])


@override_settings(OUTBOX_WEBHOOK_SECRETS=[SECRET])
class ReceiverTest(TransactionTestCase):
    def assert_answer(self, response, status, text):
        self.assertContains(response, text, status_code=status)

    def test_handled_once(self):
        event_id = uuid.uuid4()
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(event_id=event_id), 200, "handled\n")
            self.assert_answer(post(event_id=event_id), 200, "handled already")
        self.assertEqual(Thumbnail.objects.count(), 1)
        self.assertEqual(ProcessedEvent.objects.get().event_id, event_id)

    def test_what_a_handler_gets(self):
        seen, event_id = [], uuid.uuid4()
        with handling(file_stored=seen.append):
            post(b'{"n": [1]}', event_id=event_id, HTTP_OUTBOX_AGGREGATE_TYPE="Upload%20File",
                 HTTP_OUTBOX_AGGREGATE_ID="%C3%A9%25", HTTP_OUTBOX_DEDUPE_KEY="upload-42")
        (event,) = seen
        self.assertEqual((event.id, event.type, event.payload), (event_id, "file.stored", {"n": [1]}))
        self.assertEqual((event.aggregate_type, event.aggregate_id, event.idempotency_key), ("Upload File", "é%", "upload-42"))

    def test_a_handler_that_fails(self):
        """Its effect and the note of the id are undone together, and the next delivery is the first."""
        def fail(event):
            make_thumbnail(event)
            raise ZeroDivisionError("no disk")

        event_id = uuid.uuid4()
        with handling(file_stored=fail), self.assertLogs("common.views", "ERROR"):
            self.assert_answer(post(event_id=event_id), 500, "ZeroDivisionError: no disk")
        self.assertFalse(Thumbnail.objects.exists() or ProcessedEvent.objects.exists())
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(event_id=event_id), 200, "handled\n")

    def test_two_deliveries_at_once(self):
        """The second waits for the first, and handles the event only if the first did not."""
        for fails in (False, True):
            with self.subTest(fails=fails):
                Thumbnail.objects.all().delete()
                event_id, started, go_on, calls = uuid.uuid4(), threading.Event(), threading.Event(), []

                def slow(event):
                    calls.append(event)
                    make_thumbnail(event)
                    if len(calls) == 1:
                        started.set()
                        go_on.wait()
                        if fails:
                            raise ZeroDivisionError

                with handling(file_stored=slow), thread(post_quietly, event_id) as first:
                    try:
                        await_that("the first delivery", started.is_set)
                        with thread(post_quietly, event_id) as second:
                            await_that("the second to wait", lambda: someone_waits_for_a_lock() or second.done())
                            go_on.set()
                    finally:
                        go_on.set()
                self.assertEqual((first.result(), second.result()), (500 if fails else 200, 200))
                self.assertEqual(len(calls), 2 if fails else 1)
                self.assertEqual(Thumbnail.objects.count(), 1)

    def test_a_handler_that_undoes_its_transaction(self):
        """What is not committed is not handled, though no handler raised anything."""
        Thumbnail.objects.create(file_id=1, title="first")

        def catches(event):
            make_thumbnail(event)
            try:
                Thumbnail.objects.create(id=Thumbnail.objects.earliest("id").id, file_id=2, title="again")
            except IntegrityError:
                pass

        def catches_raw(event):
            make_thumbnail(event)
            with connection.cursor() as cursor:
                try:
                    cursor.execute("SELECT 1 / 0")
                except DataError:
                    pass

        def closes(event):
            make_thumbnail(event)
            connection.close()

        def rolls_back(event):
            make_thumbnail(event)
            with connection.cursor() as cursor:
                cursor.execute("ROLLBACK")

        for handler in (catches, catches_raw, closes, rolls_back):
            with self.subTest(handler=handler.__name__):
                with handling(file_stored=handler), self.assertLogs("common.views", "ERROR"):
                    self.assert_answer(post(), 500, "undone")
                self.assertFalse(ProcessedEvent.objects.exists())
                self.assertEqual(Thumbnail.objects.count(), 1)

    def test_wrong_settings_are_not_the_events_fault(self):
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(HTTP_HOST="elsewhere.example"), 503, "ALLOWED_HOSTS")
            with override_settings(OUTBOX_WEBHOOK_SECRETS=["whsec_c2hvcnQ="]):
                self.assert_answer(post(), 503, "OUTBOX_WEBHOOK_SECRET")
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE common_processedevent RENAME TO elsewhere")
            try:
                self.assert_answer(post(), 503, "manage.py migrate")
            finally:
                with connection.cursor() as cursor:
                    cursor.execute("ALTER TABLE elsewhere RENAME TO common_processedevent")
            self.assert_answer(post(), 200, "handled")

    def test_what_nobody_can_read(self):
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(HTTP_WEBHOOK_TIMESTAMP="1" * 5000), 401, "webhook-timestamp")
            self.assert_answer(post(b"[" * 100_000), 400, "this is no event")
            with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=10):
                self.assert_answer(post(), 413, "DATA_UPLOAD_MAX_MEMORY_SIZE")

    def test_the_database_leaves(self):
        """That is not the event's fault, so that it must not count."""
        def end_own_session(event):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        event_id = uuid.uuid4()
        with handling(file_stored=end_own_session):
            self.assert_answer(post(event_id=event_id), 503, "the database is away")
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(event_id=event_id), 200, "handled\n")

    def test_no_connection_to_the_database(self):
        """Nor is it the event's fault if there is none to begin with, or it takes nothing."""
        connection.close()
        with handling(file_stored=make_thumbnail):
            with mock.patch.dict(connection.settings_dict, NAME="nowhere"):
                self.assert_answer(post(), 503, "the database is away")
            with mock.patch.dict(connection.settings_dict, OPTIONS={"options": "-c default_transaction_read_only=on"}):
                self.assert_answer(post(), 503, "cannot be noted")
            connection.close()
            self.assert_answer(post(), 200, "handled")

    def test_no_handler(self):
        with handling(user_created=make_thumbnail):
            self.assert_answer(post(), 422, "no handler for events of type file.stored")
        self.assertFalse(ProcessedEvent.objects.exists())

    def test_forged(self):
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(secret=OTHER_SECRET), 401, "no signature is right")
            self.assert_answer(post(HTTP_WEBHOOK_SIGNATURE=""), 401, "no signature is right")
            self.assert_answer(post(HTTP_WEBHOOK_TIMESTAMP="1614265330"), 401, "compare the clocks")
            self.assert_answer(post(HTTP_WEBHOOK_ID=str(uuid.uuid4())), 401, "no signature is right")
            with override_settings(OUTBOX_WEBHOOK_SECRETS=[OTHER_SECRET, SECRET]):
                self.assert_answer(post(), 200, "handled\n")
            with override_settings(OUTBOX_WEBHOOK_SECRETS=[]):
                self.assert_answer(post(), 503, "OUTBOX_WEBHOOK_SECRET is not set")
        self.assertEqual(Thumbnail.objects.count(), 1)

    def test_no_event(self):
        with handling(file_stored=make_thumbnail):
            self.assert_answer(post(b"{"), 400, "this is no event")
            self.assert_answer(post(b"\xff"), 400, "this is no event")
            self.assert_answer(post(event_id="42"), 400, "this is no event")
        self.assertEqual(Client().get(reverse("outbox-events")).status_code, 405)


class ToOther:
    """A router: the outbox's tables are in another database than the first."""

    def db_for_write(self, model, **hints):
        return "other" if model is ProcessedEvent else None


@override_settings(OUTBOX_WEBHOOK_SECRETS=[SECRET], DATABASE_ROUTERS=[ToOther()])
class RoutedTest(TransactionTestCase):
    def setUp(self):
        connections.databases["other"] = dict(connection.settings_dict)
        self.addCleanup(connections.databases.pop, "other")
        self.addCleanup(lambda: connections["other"].close())

    def test_the_id_is_noted_in_the_handlers_transaction(self):
        event_id = uuid.uuid4()

        def fails(event):
            Thumbnail.objects.using("other").create(file_id=1, title="first")
            raise ValueError("not yet")

        with handling(file_stored=fails), self.assertLogs("common.views", "ERROR"):
            self.assertEqual(post(event_id=event_id).status_code, 500)
        self.assertFalse(ProcessedEvent.objects.exists() or Thumbnail.objects.exists())
        with handling(file_stored=make_thumbnail):
            self.assertContains(post(event_id=event_id), "handled\n")
        self.assertEqual((ProcessedEvent.objects.count(), Thumbnail.objects.count()), (1, 1))


def post_quietly(event_id):
    return post(json.dumps({"file_id": 42, "name": "cat.png"}).encode(), event_id=event_id).status_code
