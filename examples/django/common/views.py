"""The receiver of events, which the relay posts here.

Each answer says to the relay who is at fault, see the page on the Doorito contract: an event is given up only after
max_attempts answers that are about the event itself.
"""
import json
import logging
import uuid
from urllib.parse import unquote

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from common.once import NotReady, Undone, handle_once
from common.registry import Event, handlers_of
from common.signatures import BadSignature, verify

logger = logging.getLogger(__name__)


@csrf_exempt  # the signature says who is asking, not a cookie
@require_POST
@transaction.non_atomic_requests  # the transaction is that of the handlers
def receive(request):
    """Handle an event once, and say what became of it."""
    if not settings.OUTBOX_WEBHOOK_SECRETS:
        return answer(503, "OUTBOX_WEBHOOK_SECRET is not set: nobody can be trusted")
    try:
        verify(settings.OUTBOX_WEBHOOK_SECRETS, request.headers, request.body)
    except BadSignature as error:
        # A wrong secret refuses all events alike: the relay counts nothing, and all wait until it is mended.
        return answer(401, str(error))
    except RequestDataTooBig as error:
        return answer(413, f"raise DATA_UPLOAD_MAX_MEMORY_SIZE, or emit less: {error}")
    except ValueError as error:
        return answer(503, f"OUTBOX_WEBHOOK_SECRET: {error}")
    try:
        event = read(request)
    except (ValueError, RecursionError) as error:
        return answer(400, f"this is no event: {error}")
    if not handlers_of(event.type):
        # Counted and tried again: its handler may come with the next deploy.
        return answer(422, f"no handler for events of type {event.type}")
    try:
        return answer(200, "handled" if handle_once(event) else "handled already")
    except NotReady as error:
        return answer(503, str(error))
    except Undone as error:
        logger.error("A handler of %s %s: %s", event.type, event.id, error)
        return answer(500, str(error))
    except Exception as error:
        logger.exception("A handler of %s %s failed", event.type, event.id)
        return answer(500, f"{type(error).__name__}: {error}")


def answer(status, text):
    """Answer in plain text: the relay keeps the beginning of it as the event's error_message."""
    return HttpResponse(text + "\n", status=status, content_type="text/plain; charset=utf-8")


def read(request):
    """Make an event of a request whose signature is right. The fields are percent-encoded."""
    field = {name: unquote(value) for name, value in request.headers.items() if name.startswith("Outbox-")}
    return Event(
        id=uuid.UUID(request.headers["webhook-id"]),  # the one that is signed
        type=field.get("Outbox-Event-Type", ""),
        aggregate_type=field.get("Outbox-Aggregate-Type", ""),
        aggregate_id=field.get("Outbox-Aggregate-Id", ""),
        idempotency_key=field.get("Outbox-Dedupe-Key", ""),
        payload=json.loads(request.body),
    )
