"""What happens when a file is stored."""
from common.registry import handles
from uploads.models import Thumbnail


@handles("file.stored")
def make_thumbnail(event):
    """Make the thumbnail of a file, from what the event says."""
    Thumbnail.objects.create(file_id=event.payload["file_id"], title=f"thumbnail of {event.payload['name']}")
