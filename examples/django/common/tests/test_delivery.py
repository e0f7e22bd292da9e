"""Events on their way: emitted here, posted by the outbox program, handled here."""
from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import override_settings

from common import program, views
from common.models import OutboxEvent, ProcessedEvent
from common.tests.live import OTHER_SECRET, SECRET, LiveTestCase
from common.tests.support import await_that, handling
from uploads.models import Thumbnail, UploadFile


class Failing:
    """A handler that fails so many times."""

    def __init__(self, times):
        self.times, self.calls = times, []

    def __call__(self, event):
        self.calls.append(event)  # in several threads
        if len(self.calls) <= self.times:
            raise ZeroDivisionError("no disk")


class DeliveryTest(LiveTestCase):
    def assert_ended(self, event, status, attempts, error=""):
        event.refresh_from_db()
        self.assertEqual((event.status, event.attempts, event.next_attempt_at), (status, attempts, None), event.error_message)
        self.assertIn(error, event.error_message)
        self.assertEqual(event.delivered_at is not None, status == "delivered")

    def test_through_the_app(self):
        """A request stores a file; a relay brings the event back to the app's own handler."""
        name = "c" * 196 + ".png"  # as long as a name may be
        with self.relay():
            answer = self.client.post("/files", {"file": SimpleUploadedFile(name, b"meow")}).json()
            event = self.await_status(OutboxEvent.objects.get(id=answer["event"]), "delivered")
        self.assert_ended(event, "delivered", 0)
        self.assertEqual(UploadFile.objects.get().id, answer["file"])
        self.assertEqual((Thumbnail.objects.get().file_id, Thumbnail.objects.get().title), (answer["file"], "thumbnail of " + name))
        self.assertEqual(ProcessedEvent.objects.get().event_id, event.id)

    def test_what_arrives(self):
        """All fields arrive as they were emitted, whatever characters they have."""
        seen = []
        with handling(file_stored=seen.append):
            with transaction.atomic():
                event = self.emit(payload={"name": "é %20\r\n"}, idempotency_key="schlüssel 1%\n")
            self.assertIn("delivered 1 event", self.deliver())
        self.assertEqual(len(seen), 1)
        self.assertEqual((seen[0].id, seen[0].type, seen[0].aggregate_type), (event.id, "file.stored", "UploadFile"))
        self.assertEqual((seen[0].aggregate_id, seen[0].idempotency_key), ("42", "schlüssel 1%\n"))
        self.assertEqual(seen[0].payload, {"name": "é %20\r\n"})

    def test_replayed(self):
        """An event that is delivered once more is handled once more only when it was forgotten."""
        seen = []
        with handling(file_stored=seen.append):
            event = self.emit()
            self.deliver()
            program.run("replay", "--id", str(event.id))
            self.assertEqual(len(seen), 1)
            ProcessedEvent.objects.get(event_id=event.id).delete()
            program.run("replay", "--id", str(event.id))
            self.assertEqual(len(seen), 2)

    def test_rolled_back(self):
        seen = []
        with handling(file_stored=seen.append):
            with transaction.atomic():
                self.emit()
                transaction.set_rollback(True)
            event = self.emit()
            self.deliver()
        self.assertEqual([e.id for e in seen], [event.id])

    def test_fails_twice(self):
        handler = Failing(2)
        with handling(file_stored=handler), self.assertLogs("common.views", "ERROR"):
            event = self.emit()
            self.deliver()
        self.assert_ended(event, "delivered", 2, "answered 500 Internal Server Error: ZeroDivisionError: no disk")
        self.assertEqual(len(handler.calls), 3)

    def test_fails_for_good(self):
        """It is failed after as many attempts as its row allows, and not before. Another event does not mind."""
        handler = Failing(1000)
        with handling(file_stored=handler, user_created=lambda event: None), self.assertLogs("common.views", "ERROR"):
            event, other = self.emit(), self.emit("user.created")
            self.assertIn("1 dead", self.deliver())
        self.assert_ended(event, "failed", 5, "no disk")
        self.assert_ended(other, "delivered", 0)
        self.assertEqual(len(handler.calls), 5)
        self.assertFalse(ProcessedEvent.objects.filter(event_id=event.id).exists())

    def test_the_rows_own_maximum(self):
        handler = Failing(1000)
        with handling(file_stored=handler), self.assertLogs("common.views", "ERROR"):
            with transaction.atomic():
                event = self.emit()
                OutboxEvent.objects.filter(id=event.id).update(max_attempts=2)
            self.deliver()
        self.assert_ended(event, "failed", 2)
        self.assertEqual(len(handler.calls), 2)

    def test_no_handler(self):
        """Its handler may come with the next deploy: it is tried as often as one that fails."""
        with handling():
            event = self.emit()
            self.deliver()
        self.assert_ended(event, "failed", 5, "422 Unprocessable Entity: no handler for events of type file.stored")

    def test_the_handler_comes_later(self):
        event = self.emit()
        OutboxEvent.objects.filter(id=event.id).update(max_attempts=1_000_000)
        with handling(), self.relay():
            await_that("an attempt", lambda: OutboxEvent.objects.get(id=event.id).attempts)
            with handling(file_stored=lambda event: None):
                self.await_status(event, "delivered")

    def test_a_wrong_secret_loses_nothing(self):
        """All events wait, uncounted, until the secret is right."""
        handler, events = Failing(0), [self.emit(aggregate_id=n) for n in range(10)]
        with handling(file_stored=handler):
            with mock.patch.object(views, "verify", side_effect=views.verify) as verify, self.relay(OTHER_SECRET):
                await_that("many refusals", lambda: verify.call_count > 30)
            for event in events:
                event.refresh_from_db()
                self.assertEqual((event.status, event.attempts), ("pending", 0))
            self.assertEqual(handler.calls, [])
            self.deliver()
        for event in events:
            self.assert_ended(event, "delivered", 0)
        self.assertEqual(len(handler.calls), 10)

    def test_a_change_of_secrets(self):
        """A relay with both secrets is believed by a receiver that knows either."""
        with handling(file_stored=lambda event: None), self.relay(OTHER_SECRET, SECRET):
            for secret in (SECRET, OTHER_SECRET):
                with override_settings(OUTBOX_WEBHOOK_SECRETS=[secret]):
                    self.await_status(self.emit(), "delivered")

    def test_the_database_leaves(self):
        """A handler that loses its connection is not counted: here it does so three times."""
        calls = []

        def end_own_session(event):
            calls.append(event)
            if len(calls) <= 3:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        with handling(file_stored=end_own_session):
            event = self.emit()
            self.deliver()
        self.assert_ended(event, "delivered", 0)
        self.assertEqual(len(calls), 4)
