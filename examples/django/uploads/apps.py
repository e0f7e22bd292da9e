"""The app."""
from django.apps import AppConfig


class UploadsConfig(AppConfig):
    """Files."""

    name = "uploads"
