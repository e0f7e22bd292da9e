"""emit_event: in the caller's transaction, once for each key."""
import datetime
import decimal
import threading
import uuid

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.test import TransactionTestCase

from common.models import OutboxEvent
from common.services import emit_event
from common.tests.support import await_that, someone_waits_for_a_lock, thread


def emit(event_type="file.stored", payload=None, **options):
    with transaction.atomic():
        return emit_event("UploadFile", 42, event_type, {} if payload is None else payload, **options)


class EmitTest(TransactionTestCase):
    def test_a_new_event(self):
        """It is as the contract says, due by the database's clock."""
        event = emit(payload={"name": "cat.png"})
        stored = OutboxEvent.objects.extra(where=["next_attempt_at <= now()"]).get()
        self.assertEqual(event, stored)
        self.assertEqual((stored.aggregate_type, stored.aggregate_id, stored.event_type), ("UploadFile", "42", "file.stored"))
        self.assertEqual(stored.payload, {"name": "cat.png"})
        self.assertEqual((stored.status, stored.attempts, stored.max_attempts, stored.error_message), ("pending", 0, 5, ""))
        self.assertIsNone(stored.delivered_at)
        self.assertEqual(stored.id.version, 7)
        self.assertEqual(stored.idempotency_key, str(stored.id))

    def test_outside_of_a_transaction(self):
        with self.assertRaisesMessage(transaction.TransactionManagementError, "inside transaction.atomic()"):
            emit_event("UploadFile", 42, "file.stored", {})
        self.assertFalse(OutboxEvent.objects.exists())

    def test_an_unsaved_record(self):
        with transaction.atomic(), self.assertRaisesMessage(ValueError, "aggregate_id is None"):
            emit_event("UploadFile", None, "file.stored", {})

    def test_a_key_that_is_a_number(self):
        self.assertEqual(emit(idempotency_key=0).id, emit(idempotency_key=0).id)

    def test_rolled_back(self):
        """Neither a transaction nor a savepoint that is rolled back leaves an event."""
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            emit_event("UploadFile", 42, "file.stored", {})
            1 / 0
        with transaction.atomic():
            with self.assertRaises(ZeroDivisionError), transaction.atomic():
                emit_event("UploadFile", 42, "file.stored", {})
                1 / 0
        self.assertFalse(OutboxEvent.objects.exists())

    def test_a_repeated_key(self):
        first = emit(idempotency_key="upload-42", payload={"n": 1})
        again = emit(idempotency_key="upload-42", payload={"n": 2})
        self.assertEqual((again.id, again.payload), (first.id, {"n": 1}))
        other = emit("file.deleted", idempotency_key="upload-42")
        self.assertNotEqual(other.id, first.id)
        self.assertEqual(OutboxEvent.objects.count(), 2)

    def test_raced(self):
        """Of two transactions with the same key the second waits for the first, and finds its event, or writes its own."""
        for commits in (True, False):
            with self.subTest(commits=commits):
                OutboxEvent.objects.all().delete()
                emitted, go_on = threading.Event(), threading.Event()

                def first():
                    with transaction.atomic():
                        event = emit_event("UploadFile", 42, "file.stored", {"by": "first"}, idempotency_key="upload-42")
                        emitted.set()
                        go_on.wait()
                        transaction.set_rollback(not commits)
                        return event

                def second():
                    return emit(payload={"by": "second"}, idempotency_key="upload-42")

                with thread(first) as one:
                    try:
                        await_that("the first to emit", emitted.is_set)
                        with thread(second) as two:
                            await_that("the second to wait", lambda: someone_waits_for_a_lock() or two.done())
                            go_on.set()
                    finally:
                        go_on.set()
                self.assertEqual(one.result().id == two.result().id, commits)
                self.assertEqual(OutboxEvent.objects.get().payload, {"by": "first" if commits else "second"})

    def test_values_that_json_does_not_know(self):
        payload = {
            "id": uuid.UUID("01954321-0000-7000-8000-00000000000a"),
            "price": decimal.Decimal("19.90"),
            "at": datetime.datetime(2026, 2, 26, 9, 30, 0, 100999, tzinfo=datetime.timezone.utc),
            "took": datetime.timedelta(days=1, hours=2, seconds=3, microseconds=4),
        }
        self.assertEqual(OutboxEvent.objects.get(id=emit(payload=payload).id).payload, {
            "id": "01954321-0000-7000-8000-00000000000a",
            "price": "19.90",
            "at": "2026-02-26T09:30:00.100Z",
            "took": "P1DT02H00M03.000004S",
        })

    def test_refused(self):
        """What PostgreSQL would refuse is refused before, and the transaction goes on."""
        with transaction.atomic():
            for error, arguments in [
                (ValidationError, ("U" * 101, 42, "file.stored", {})),
                (ValidationError, ("UploadFile", "4" * 101, "file.stored", {})),
                (ValidationError, ("UploadFile", 42, "f" * 101, {})),
                (ValidationError, ("UploadFile", 42, "", {})),
                (ValueError, ("Upload\0File", 42, "file.stored", {})),
                (ValueError, ("UploadFile", "\ud800", "file.stored", {})),
                (ValueError, ("UploadFile", 42, "file.stored", {"name": "\ud800"})),
                (ValueError, ("UploadFile", 42, "file.stored", None)),
                (ValueError, ("UploadFile", 42, "file.stored", {"size": float("nan")})),
                (ValueError, ("UploadFile", 42, "file.stored", {"name": "\\\\\0"})),
                (ValueError, ("UploadFile", 42, "file.stored", {"name": "c" * (1 << 20)})),
                (TypeError, ("UploadFile", 42, "file.stored", {"file": object()})),
            ]:
                with self.subTest(arguments=str(arguments)[:80]), self.assertRaises(error):
                    emit_event(*arguments)
            with self.assertRaises(ValidationError):
                emit_event("UploadFile", 42, "file.stored", {}, idempotency_key="k" * 256)
            emit_event("UploadFile", 42, "file.stored", {"name": r"a backslash and \u0000"})
        self.assertEqual(OutboxEvent.objects.count(), 1)

    def test_the_table(self):
        """The names of the index and the constraint are the contract's."""
        with connection.cursor() as cursor:
            constraints = connection.introspection.get_constraints(cursor, OutboxEvent._meta.db_table)
        self.assertEqual(constraints["unique_event_type_idempotency_key"]["columns"], ["event_type", "idempotency_key"])
        self.assertTrue(constraints["unique_event_type_idempotency_key"]["unique"])
        self.assertEqual(constraints["idx_outbox_event_pending_next_attempt"]["columns"], ["next_attempt_at"])
