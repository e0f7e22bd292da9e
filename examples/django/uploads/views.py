"""Storing files."""
from django.db import transaction
from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from common.services import emit_event
from uploads.models import UploadFile


@csrf_exempt  # so that curl can call it; an app of yours asks who is there
@require_POST
def store(request):
    """Store a file and tell of it, in one transaction."""
    upload = request.FILES.get("file")
    if upload is None:
        return JsonResponse({"error": "post a form with a file called file"}, status=400)
    with transaction.atomic():
        file = UploadFile.objects.create(name=upload.name[-200:], size=upload.size)
        event = emit_event(
            "UploadFile", file.pk, "file.stored",
            {"file_id": file.pk, "name": file.name, "size": file.size, "stored_at": file.created_at},
            idempotency_key=f"upload-{file.pk}",
        )
    return JsonResponse({"file": file.pk, "event": event.id}, status=201)
