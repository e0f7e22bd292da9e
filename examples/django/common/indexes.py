"""Indexes with names as long as PostgreSQL allows."""
from django.db import models


class LongNameIndex(models.Index):
    """An index whose name may have 63 characters.

    Django allows 30, for the sake of Oracle; the contract's idx_outbox_event_pending_next_attempt has 37.
    """

    max_name_length = 63
