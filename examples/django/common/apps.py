"""The app, which finds the handlers of all others."""
from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CommonConfig(AppConfig):
    """Imports the module handlers of every app, as the admin does with theirs."""

    name = "common"

    def ready(self):
        from common import checks  # noqa: F401  registers itself

        autodiscover_modules("handlers")
