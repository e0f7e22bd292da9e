"""manage.py deliver_outbox: the periodic task, for cron or Celery beat."""
from django.core.management.base import BaseCommand

from common import program


class Command(BaseCommand):
    """Runs the program until nothing is left to deliver. Several at once, or one beside a relay, share the work."""

    help = "Delivers the events that are due or wait for a retry, then ends. Exits with 1 if some are left after the timeout."

    def add_arguments(self, parser):
        parser.add_argument("--timeout", default="1m", help="how long it may take, such as 30s or 10m (default: 1m)")

    def handle(self, *args, **options):
        self.stdout.write(program.run("drain", "--timeout", options["timeout"]))
