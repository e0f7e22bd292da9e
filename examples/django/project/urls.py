"""URLs: the admin, the receiver of events, and the app that emits some."""
from django.contrib import admin
from django.urls import path

from common.views import receive
from uploads.views import store

urlpatterns = [
    path("admin/", admin.site.urls),
    path("outbox/events", receive, name="outbox-events"),
    path("files", store, name="files"),
]
