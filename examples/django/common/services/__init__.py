"""What apps call."""
from common.services.emit import emit_event

__all__ = ["emit_event"]
