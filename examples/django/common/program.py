"""The outbox program, called on the database and the table of this project."""
import os
import subprocess

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections, router
from psycopg2.extensions import make_dsn

from common.models import OutboxEvent


def environment():
    """Return the environment of the program. Everything is in it, so that no secret is on a command line."""
    database = connections[router.db_for_write(OutboxEvent)].settings_dict
    address = {
        "dbname": database["NAME"],
        "user": database["USER"],
        "password": database["PASSWORD"],
        "host": database["HOST"],
        "port": database["PORT"],
        **database["OPTIONS"],
    }
    return {
        **os.environ,
        "OUTBOX_DATABASE_URL": make_dsn(**{name: value for name, value in address.items() if value}),
        "OUTBOX_LAYOUT": "doorito",
        "OUTBOX_TABLE": OutboxEvent._meta.db_table,
        "OUTBOX_TO": settings.OUTBOX_TO,
        "OUTBOX_WEBHOOK_SECRET": " ".join(settings.OUTBOX_WEBHOOK_SECRETS),
    }


def run(*arguments):
    """Run the program to its end and return what it prints. Its log goes where this process's does."""
    program = [settings.OUTBOX_PROGRAM, *arguments]
    try:
        done = subprocess.run(program, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise not_found(error) from error
    if done.returncode:
        raise CommandError(f"outbox {arguments[0]}: exit code {done.returncode}, see its log", returncode=done.returncode)
    return done.stdout.strip()


def become(*arguments):
    """Run the program in place of this process, so that signals reach it. It does not return."""
    try:
        os.execvpe(settings.OUTBOX_PROGRAM, [settings.OUTBOX_PROGRAM, *arguments], environment())
    except OSError as error:
        raise not_found(error) from error


def not_found(error):
    """Return the error of a program that is not there, in words that say what to do."""
    return CommandError(f"{settings.OUTBOX_PROGRAM} cannot be run ({error.strerror}): set OUTBOX_PROGRAM to the outbox program")
