"""Files, and what is made of them."""
from django.db import models

from common.models import TimeStampedModel


class UploadFile(TimeStampedModel):
    """A file that somebody has stored."""

    name = models.CharField(max_length=200)
    size = models.PositiveIntegerField()

    def __str__(self):
        return self.name


class Thumbnail(TimeStampedModel):
    """The small picture of a file: what the handler of file.stored makes."""

    file_id = models.BigIntegerField(unique=True)  # as the event says; handlers do not read the source's table
    title = models.CharField(max_length=250)

    def __str__(self):
        return self.title
