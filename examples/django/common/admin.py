"""The admin: how events stand, and a retry of those that failed."""
from django.contrib import admin, messages
from django.db import transaction
from django.db.models.functions import Now
from django.utils.text import Truncator

from common.models import OutboxEvent, ProcessedEvent
from common.services.wake import wake_after_commit


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows rows and saves none. A form would write back all columns as they were, over what the relay has done since."""

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False


@admin.register(OutboxEvent)
class OutboxEventAdmin(ReadOnlyAdmin):
    """Events, the newest first: their ids are in the order of their making, and have an index."""

    list_display = [
        "event_type", "aggregate_type", "aggregate_id", "status", "tries", "error", "next_attempt_at", "delivered_at", "created_at",
    ]
    list_filter = ["status", "created_at", "event_type"]
    search_fields = ["id", "event_type", "aggregate_id", "idempotency_key", "error_message"]
    ordering = ["-id"]
    show_full_result_count = False
    actions = ["retry"]

    @admin.display(description="attempts")
    def tries(self, event):
        return f"{event.attempts} of {event.max_attempts}"

    @admin.display(description="last error")
    def error(self, event):
        return Truncator(event.error_message).chars(80)

    def has_delete_permission(self, request, obj=None):
        return False  # whoever deletes a pending event loses it; outbox purge deletes what is delivered

    def has_retry_permission(self, request):
        return request.user.has_perm("common.change_outboxevent")

    @admin.action(description="Retry the failed ones", permissions=["retry"])
    def retry(self, request, queryset):
        """Bring failed events back as outbox retry does: pending, no attempts, due now. Others are left alone."""
        with transaction.atomic(using=queryset.db):
            failed = list(queryset.filter(status=OutboxEvent.Status.FAILED).select_for_update())
            OutboxEvent.objects.using(queryset.db).filter(pk__in=[event.pk for event in failed]).update(
                status=OutboxEvent.Status.PENDING, attempts=0, next_attempt_at=Now(), updated_at=Now(),
            )
            for event in failed:
                self.log_change(request, event, "Retried.")
            if failed:
                wake_after_commit(queryset.db)
        self.message_user(request, f"Retried: {len(failed)}.", messages.SUCCESS if failed else messages.WARNING)


@admin.register(ProcessedEvent)
class ProcessedEventAdmin(ReadOnlyAdmin):
    """The events that were handled. Whoever deletes one lets it be handled again, when it is delivered again."""

    list_display = ["event_id", "processed_at"]
    search_fields = ["event_id"]
    ordering = ["-event_id"]
    show_full_result_count = False
