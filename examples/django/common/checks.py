"""What manage.py check says about the outbox."""
from django.conf import settings
from django.core.checks import Error, Warning, register

from common.signatures import key_of


@register()
def webhook_secrets(app_configs, **kwargs):
    """A receiver without a secret refuses everything: better said at the deploy than by events that wait."""
    secrets = getattr(settings, "OUTBOX_WEBHOOK_SECRETS", None)
    if isinstance(secrets, str):
        return [Error("OUTBOX_WEBHOOK_SECRETS is a string; it is a list of secrets", id="common.E002")]
    if not secrets:
        return [Warning("OUTBOX_WEBHOOK_SECRET is not set: no event is accepted", id="common.W001")]
    try:
        for secret in secrets:
            key_of(secret)
    except ValueError as error:
        return [Error(f"OUTBOX_WEBHOOK_SECRET: {error}", id="common.E001")]
    return []


@register()
def receiver_host(app_configs, **kwargs):
    """Without the middleware, a host that ALLOWED_HOSTS lacks would count against every event."""
    if "common.middleware.ReceiverHost" in settings.MIDDLEWARE:
        return []
    return [Warning("common.middleware.ReceiverHost is not in MIDDLEWARE: put it first", id="common.W002")]
