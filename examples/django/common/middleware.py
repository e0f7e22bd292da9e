"""Middleware of the receiver."""
from django.core.exceptions import DisallowedHost
from django.urls import reverse

from common.views import answer


class ReceiverHost:
    """Answer for a host that ALLOWED_HOSTS lacks as for a setting that is wrong, and not as for an event that is.

    Django refuses such a request with 400 before it comes to the receiver; the relay would count that against each
    event. It stands before all others, and is for the receiver's path alone.
    """

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        if request.path == reverse("outbox-events"):
            try:
                request.get_host()
            except DisallowedHost as error:
                return answer(503, f"ALLOWED_HOSTS lacks the host of OUTBOX_TO: {error}")
        return self.get_response(request)
