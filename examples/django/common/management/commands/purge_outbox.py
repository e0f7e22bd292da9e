"""manage.py purge_outbox: deletes what nobody needs any more, for cron."""
import datetime

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from common import program
from common.models import OutboxEvent, ProcessedEvent


class Command(BaseCommand):
    """Deletes delivered events, and then the ids of handled events that cannot come again because their rows are gone."""

    help = "Deletes delivered events of a certain age, and the ids of handled events that are gone. Failed events stay."

    def add_arguments(self, parser):
        parser.add_argument("--days", type=int, default=30, help="how many days a delivered event is kept (default: 30)")

    def handle(self, *args, **options):
        days = options["days"]
        if days < 1:
            raise CommandError(f"--days is {days}; it must be at least 1")
        self.stdout.write(program.run("purge", "--retention", f"{24 * days}h"))
        forgotten, _ = ProcessedEvent.objects.filter(
            ~Exists(OutboxEvent.objects.filter(id=OuterRef("event_id"))),
            processed_at__lt=Now() - datetime.timedelta(days=days),
        ).delete()
        self.stdout.write(f"forgot {forgotten} handled events")
