"""What manage.py check says about the outbox."""
from django.conf import settings
from django.core.checks import Error, Warning, register

from common.signatures import key_of


@register()
def webhook_secrets(app_configs, **kwargs):
    """A receiver without a secret refuses everything: better said at the deploy than by events that wait."""
    if not settings.OUTBOX_WEBHOOK_SECRETS:
        return [Warning("OUTBOX_WEBHOOK_SECRET is not set: no event is accepted", id="common.W001")]
    try:
        for secret in settings.OUTBOX_WEBHOOK_SECRETS:
            key_of(secret)
    except ValueError as error:
        return [Error(f"OUTBOX_WEBHOOK_SECRET: {error}", id="common.E001")]
    return []
