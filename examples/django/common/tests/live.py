"""Tests with the outbox program and a Django that it reaches over HTTP."""
import contextlib
import io
import os
import subprocess
import tempfile
from unittest import mock

from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.test import LiveServerTestCase, override_settings
from django.urls import reverse

from common import program
from common.models import OutboxEvent
from common.services import emit_event
from common.tests.support import PATIENCE, await_that

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # the example of Standard Webhooks
OTHER_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"


class LiveTestCase(LiveServerTestCase):
    """A Django that listens, with this test's database, and a program that posts events to it."""

    def setUp(self):
        receiver = self.live_server_url + reverse("outbox-events") + "#allow-private=true"
        for change in (
            override_settings(OUTBOX_TO=receiver, OUTBOX_WEBHOOK_SECRETS=[SECRET]),
            # Short delays: what matters is how often an event is tried. Every flag of the program can be set so.
            mock.patch.dict(os.environ, {
                "OUTBOX_BASE_DELAY": "1ms", "OUTBOX_MAX_DELAY": "5ms", "OUTBOX_POLL": "50ms", "OUTBOX_LOG_LEVEL": "error",
            }),
        ):
            change.__enter__()
            self.addCleanup(change.__exit__, None, None, None)

    def emit(self, event_type="file.stored", payload=None, aggregate_id=42, **options):
        with transaction.atomic():
            return emit_event("UploadFile", aggregate_id, event_type, payload or {}, **options)

    def deliver(self):
        """Run the periodic task: it ends when nothing is left to deliver or to try again."""
        said = io.StringIO()
        call_command("deliver_outbox", timeout=f"{PATIENCE}s", stdout=said)
        return said.getvalue()

    @contextlib.contextmanager
    def relay(self, *secrets):
        """Run a relay, with secrets of its own if there are any, and end it as an operator would."""
        with override_settings(OUTBOX_WEBHOOK_SECRETS=secrets or [SECRET]):
            environment = program.environment()
        with tempfile.TemporaryFile() as log:
            relay = subprocess.Popen([settings.OUTBOX_PROGRAM, "relay"], env=environment, stdout=log, stderr=log)
            try:
                yield
            finally:
                relay.terminate()
                code = relay.wait(PATIENCE)
                log.seek(0)
            self.assertEqual(code, 0, log.read().decode())

    def await_status(self, event, status):
        """Wait until an event has a status; return it as it is then."""

        def look():
            event.refresh_from_db()
            return event.status == status

        await_that(f"{event} to be {status}", look)
        return event
