"""The outbox table of the Doorito contract, and the ids of the events that were handled."""
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils import timezone

from common.indexes import LongNameIndex
from common.uuid7 import uuid7


class TimeStampedModel(models.Model):
    """A row that knows when it was made and last changed."""

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class OutboxEvent(TimeStampedModel):
    """An event that waits for its delivery, or had it.

    Apps make one with common.services.emit_event; after that only the relay writes it, and a person who retries it.
    It refers to no other table: a handler reads the payload, not the source.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7)
    aggregate_type = models.CharField(max_length=100)
    aggregate_id = models.CharField(max_length=100)
    event_type = models.CharField(max_length=100)
    payload = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PENDING)
    idempotency_key = models.CharField(max_length=255)
    attempts = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=5)
    # NULL when nothing is left to try. A pending event without a due time would never be delivered.
    next_attempt_at = models.DateTimeField(null=True, default=timezone.now)
    delivered_at = models.DateTimeField(null=True)
    error_message = models.TextField(blank=True)

    class Meta:
        indexes = [
            LongNameIndex(
                fields=["next_attempt_at"],
                condition=models.Q(status="pending"),
                name="idx_outbox_event_pending_next_attempt",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["event_type", "idempotency_key"], name="unique_event_type_idempotency_key"),
        ]

    def __str__(self):
        return f"{self.event_type} of {self.aggregate_type} {self.aggregate_id}"


class ProcessedEvent(models.Model):
    """An event that was handled: written in the transaction of the handler's effect, so that neither is without the other."""

    event_id = models.UUIDField(primary_key=True)
    processed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self):
        return str(self.event_id)
