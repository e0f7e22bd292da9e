"""Signatures of requests, as Standard Webhooks defines them and the outbox program makes them."""
import base64
import binascii
import hashlib
import hmac
import time

# How far from now the time of a request may be, in seconds: a request that somebody has recorded is not good for long.
TOLERANCE = 5 * 60

# More than any time in seconds has: who asks may send anything.
MAX_DIGITS = 12


class BadSignature(Exception):
    """The request is not from somebody who knows a secret, or it is old."""


def key_of(secret):
    """Return the bytes of a secret such as whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw. No error repeats it."""
    prefix, _, encoded = secret.partition("_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        key = b""
    if prefix != "whsec" or not 24 <= len(key) <= 64:
        raise ValueError("a secret is whsec_ and 24 to 64 bytes in base64")
    return key


def sign(secret, event_id, timestamp, body):
    """Return the signature of a request, as its header has it."""
    digest = hmac.new(key_of(secret), f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def verify(secrets, headers, body, now=None):
    """Raise BadSignature unless one of the secrets has signed the request, within the tolerance of now.

    During a change of secrets a request has a signature of each, separated by spaces.
    """
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not event_id or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MAX_DIGITS):
        raise BadSignature("webhook-id or webhook-timestamp is missing")
    away = abs((time.time() if now is None else now) - int(timestamp))
    if away > TOLERANCE:
        raise BadSignature(f"webhook-timestamp is {away:.0f} s from now, more than {TOLERANCE}: compare the clocks")
    given = headers.get("webhook-signature", "").encode().split()
    for secret in secrets:
        want = sign(secret, event_id, timestamp, body).encode()
        for signature in given:
            if hmac.compare_digest(signature, want):
                return
    raise BadSignature("no signature is right: compare OUTBOX_WEBHOOK_SECRET on both sides")
