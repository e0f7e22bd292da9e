"""Settings, all from the environment, so that no secret is in a file of the repository.

The names that begin with OUTBOX_ are the outbox program's own: one environment serves both.
"""
import os
import pathlib

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key
from psycopg2.extensions import parse_dsn

BASE_DIR = pathlib.Path(__file__).resolve().parent.parent

DEBUG = os.environ.get("DJANGO_DEBUG") == "1"
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured("set DJANGO_SECRET_KEY, or DJANGO_DEBUG=1 on a developer's machine")
    SECRET_KEY = get_random_secret_key()  # sessions end with the process
ALLOWED_HOSTS = os.environ.get("DJANGO_ALLOWED_HOSTS", "127.0.0.1 localhost").split()


def database(url):
    """Make Django's setting of an address that libpq understands."""
    parameters = parse_dsn(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname", ""),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "OPTIONS": parameters,  # sslmode and the like
    }


DATABASES = {"default": database(os.environ.get("DATABASE_URL", "postgres:///doorito"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The outbox program, where it posts events to, and the secrets that sign them: the first is the one in use, more are
# accepted while it is changed.
OUTBOX_PROGRAM = os.environ.get("OUTBOX_PROGRAM", "outbox")
OUTBOX_TO = os.environ.get("OUTBOX_TO", "http://127.0.0.1:8000/outbox/events#allow-private=true")
OUTBOX_WEBHOOK_SECRETS = os.environ.get("OUTBOX_WEBHOOK_SECRET", "").split()

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "common",
    "uploads",
]
MIDDLEWARE = [
    "common.middleware.ReceiverHost",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
STATIC_URL = "/static/"
USE_TZ = True
TIME_ZONE = "UTC"
