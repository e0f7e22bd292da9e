"""manage.py outbox: the outbox program on this project's table."""
import argparse

from django.core.management.base import BaseCommand

from common import program


class Command(BaseCommand):
    """Becomes the program: manage.py outbox relay is a process to supervise."""

    help = "Runs the outbox program on the project's database and table: outbox relay, outbox doctor, outbox retry ID."
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is told, such as: doctor --json")

    def handle(self, *args, **options):
        program.become(*options["arguments"])
