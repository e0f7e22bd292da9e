"""The admin: what it shows, and the retry."""
import urllib.error

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User

from common import program
from common.models import OutboxEvent
from common.tests.browser import Browser
from common.tests.live import LiveTestCase
from common.tests.support import handling

EVENTS = "/admin/common/outboxevent/"


class AdminTest(LiveTestCase):
    def setUp(self):
        super().setUp()
        User.objects.create_superuser("ada", password="a password of a test")
        self.browser = Browser(self.live_server_url)
        self.browser.log_in("ada", "a password of a test")

    def failed_event(self, **options):
        with handling():
            event = self.emit(**options)
            self.deliver()
        event.refresh_from_db()
        self.assertEqual(event.status, "failed")
        return event

    def retry(self, *events):
        return self.browser.post(EVENTS, {"action": "retry", "_selected_action": [event.pk for event in events]})

    def test_retry(self):
        """A failed event is found, retried and delivered. A delivered one that was ticked with it is left alone."""
        event = self.failed_event(idempotency_key="upload-42")
        with handling(file_stored=lambda event: None):
            done = self.emit()
            self.deliver()
        done.refresh_from_db()

        page = self.browser.get(EVENTS + "?status__exact=failed&q=upload-42")
        self.assertIn(str(event.id), page)
        self.assertIn("5 of 5", page)
        self.assertIn("Retried: 1.", self.retry(event, done))

        retried = OutboxEvent.objects.extra(where=["next_attempt_at <= now()"]).get(status="pending")
        self.assertEqual((retried.id, retried.attempts, retried.delivered_at), (event.id, 0, None))
        self.assertEqual(retried.error_message, event.error_message)
        self.assertGreater(retried.updated_at, event.updated_at)
        self.assertEqual(OutboxEvent.objects.filter(id=done.id).values().get(), row_of(done))
        self.assertEqual([entry.object_id for entry in LogEntry.objects.all()], [str(event.id)])

        calls = []
        with handling(file_stored=calls.append):
            self.deliver()
        event.refresh_from_db()
        self.assertEqual((event.status, [call.id for call in calls]), ("delivered", [event.id]))

    def test_as_the_program_retries(self):
        """The row is the same as after outbox retry, but for the times."""
        here, there = self.failed_event(), self.failed_event()
        self.retry(here)
        program.run("retry", str(there.id))
        changing = {"id", "idempotency_key", "created_at", "updated_at", "next_attempt_at"}
        here, there = (
            {name: value for name, value in OutboxEvent.objects.filter(id=e.id).values().get().items() if name not in changing}
            for e in (here, there)
        )
        self.assertEqual(here, there)
        self.assertFalse(OutboxEvent.objects.exclude(next_attempt_at__isnull=False).exists())

    def test_retrying_a_pending_one(self):
        """It is somebody's work: its attempts and its due time stay."""
        event = self.emit()
        OutboxEvent.objects.filter(id=event.id).update(attempts=3)
        event.refresh_from_db()
        self.assertIn("Retried: 0.", self.retry(event))
        self.assertEqual(OutboxEvent.objects.filter(id=event.id).values().get(), row_of(event))

    def test_read_only(self):
        """Nothing can be added, changed or deleted by hand: a form would write over what the relay does."""
        event = self.emit(payload={"name": "cat.png"})
        page = self.browser.get(f"{EVENTS}{event.id}/change/")
        self.assertIn("cat.png", page)
        self.assertNotIn('name="_save"', page)
        for path in (EVENTS + "add/", f"{EVENTS}{event.id}/delete/"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.browser.get(path)
            self.assertEqual(refused.exception.code, 403)
        self.assertNotIn("delete_selected", self.browser.get(EVENTS))

    def test_a_viewer(self):
        """Whoever may only look cannot retry."""
        event = self.failed_event()
        viewer = User.objects.create_user("eve", password="a password of a test", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_outboxevent"))
        self.browser = Browser(self.live_server_url)
        self.browser.log_in("eve", "a password of a test")
        page = self.browser.get(EVENTS)
        self.assertIn(str(event.id), page)
        self.assertNotIn('value="retry"', page)
        # The list has no form for him; the token of another page is as good.
        fields = {"action": "retry", "_selected_action": event.pk, "index": 0}
        self.browser.post(EVENTS, fields, form="/admin/password_change/")
        event.refresh_from_db()
        self.assertEqual(event.status, "failed")


def row_of(event):
    """The columns of an event as values() has them."""
    return {field.attname: getattr(event, field.attname) for field in event._meta.fields}
