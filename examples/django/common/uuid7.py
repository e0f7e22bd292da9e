"""UUIDs of version 7: ids in the order of their making, which keeps the newest rows together in the primary key's index."""
import secrets
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def uuid7():
    """Return a UUID that is greater than every other that this process has made.

    The 12 bits after the milliseconds are the fraction of the millisecond (RFC 9562, section 6.2, method 3), one more
    than the last where the clock has not moved, or was set back.
    """
    global _last
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    stamp = milliseconds << 12 | (rest << 12) // 1_000_000
    with _lock:
        _last = stamp = max(stamp, _last + 1)
    return uuid.UUID(int=(stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62))
