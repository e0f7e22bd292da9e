"""The admin of files."""
from django.contrib import admin

from uploads.models import Thumbnail, UploadFile


@admin.register(UploadFile)
class UploadFileAdmin(admin.ModelAdmin):
    """Files."""

    list_display = ["name", "size", "created_at"]


@admin.register(Thumbnail)
class ThumbnailAdmin(admin.ModelAdmin):
    """Thumbnails, made by the handler of file.stored."""

    list_display = ["title", "file_id", "created_at"]
