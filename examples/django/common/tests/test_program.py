"""The outbox program on the table that Django made."""
import io
import subprocess
import sys

from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import override_settings

from common import program
from common.models import OutboxEvent, ProcessedEvent
from common.tests.live import LiveTestCase
from common.tests.support import handling


class ProgramTest(LiveTestCase):
    def test_adopted(self):
        """The program adds the indexes that it lacks, finds nothing wrong, and Django sees no difference."""
        program.run("migrate", "up", "--adopt")
        program.run("migrate", "up", "--adopt")  # again: nothing is left to do
        with handling(file_stored=lambda event: None):
            self.emit()
            self.deliver()
        self.emit()
        # The server of a test need not be durable, which doctor would say of a whole examination.
        checks = ("layout", "privileges", "notifications", "indexes", "relays", "stuck", "retention")
        program.run("doctor", *(f"--check={name}" for name in checks))
        call_command("makemigrations", check=True, dry_run=True, stdout=io.StringIO())

    def test_purge(self):
        """Delivered events go when they are old, and the ids of handled ones with them; all others stay."""
        with handling(file_stored=lambda event: None):
            old, young = self.emit(), self.emit()
            self.deliver()
        with handling():
            failed = self.emit()
            self.deliver()
        waiting = self.emit()
        for table, column, ids in (
            (OutboxEvent, "delivered_at", [old.id]), (ProcessedEvent, "processed_at", [old.id, young.id]),
        ):
            table.objects.filter(pk__in=ids).update(**{column: "2020-01-01T00:00:00Z"})
        # By whichever time the program goes: failed and pending events are as old.
        OutboxEvent.objects.exclude(id=young.id).update(created_at="2020-01-01T00:00:00Z", updated_at="2020-01-01T00:00:00Z")

        call_command("purge_outbox", days=30, stdout=io.StringIO())
        self.assertEqual(set(OutboxEvent.objects.values_list("id", flat=True)), {young.id, failed.id, waiting.id})
        self.assertEqual(set(ProcessedEvent.objects.values_list("event_id", flat=True)), {young.id})

    def test_as_a_process(self):
        """manage.py outbox becomes the program, with its exit code."""
        for arguments, code, words in (
            (["version"], 0, "outbox"), (["stats", "--json"], 0, "{"), (["frobnicate"], 2, "frobnicate"),
        ):
            with self.subTest(arguments):
                done = subprocess.run(
                    [sys.executable, settings.BASE_DIR / "manage.py", "outbox", *arguments],
                    env=self.process_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                )
                self.assertEqual(done.returncode, code, done.stdout)
                self.assertIn(words, done.stdout)

    def process_environment(self):
        environment = program.environment()
        return {**environment, "DATABASE_URL": environment["OUTBOX_DATABASE_URL"]}

    def test_failures_of_the_program(self):
        with override_settings(OUTBOX_TO="nowhere://"), self.assertRaisesMessage(CommandError, "outbox drain: exit code 2"):
            self.deliver()
        with override_settings(OUTBOX_PROGRAM="/nowhere/outbox"), self.assertRaisesMessage(CommandError, "set OUTBOX_PROGRAM"):
            self.deliver()
        with override_settings(OUTBOX_WEBHOOK_SECRETS=[]), self.assertRaisesMessage(CommandError, "OUTBOX_WEBHOOK_SECRET is not set"):
            self.deliver()
        with override_settings(), self.assertRaisesMessage(CommandError, "the settings lack OUTBOX_TO"):
            del settings.OUTBOX_TO
            self.deliver()
        with self.assertRaisesMessage(CommandError, "--days is 0"):
            call_command("purge_outbox", days=0, stdout=io.StringIO())
