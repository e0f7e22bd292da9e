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
        "OUTBOX_TO": setting("OUTBOX_TO"),
        "OUTBOX_WEBHOOK_SECRET": " ".join(setting("OUTBOX_WEBHOOK_SECRETS")),
    }


def setting(name):
    """Return one of the project's settings."""
    try:
        return getattr(settings, name)
    except AttributeError as error:
        raise CommandError(f"the settings lack {name}: take it from the example's project/settings.py") from error


def check_secrets(arguments):
    """Refuse to deliver unsigned: the receiver would answer every event with 401."""
    if arguments[:1] in (("relay",), ("drain",)) and setting("OUTBOX_TO").startswith("http") and not setting("OUTBOX_WEBHOOK_SECRETS"):
        raise CommandError("OUTBOX_WEBHOOK_SECRET is not set: the receiver believes no event without a signature")


def run(*arguments):
    """Run the program to its end and return what it prints. Its log goes where this process's does."""
    check_secrets(arguments)
    program = [setting("OUTBOX_PROGRAM"), *arguments]
    try:
        done = subprocess.run(program, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise not_found(error) from error
    if done.returncode:
        raise CommandError(f"outbox {arguments[0]}: exit code {done.returncode}, see its log", returncode=done.returncode)
    return done.stdout.strip()


def become(*arguments):
    """Run the program in place of this process, so that signals reach it. It does not return."""
    check_secrets(arguments)
    program = [setting("OUTBOX_PROGRAM"), *arguments]
    try:
        os.execvpe(program[0], program, environment())
    except OSError as error:
        raise not_found(error) from error


def not_found(error):
    """Return the error of a program that is not there, in words that say what to do."""
    return CommandError(f"{settings.OUTBOX_PROGRAM} cannot be run ({error.strerror}): set OUTBOX_PROGRAM to the outbox program")
