"""UUIDs of version 7."""
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from common import uuid7 as module
from common.uuid7 import uuid7


class UUID7Test(unittest.TestCase):
    def test_form(self):
        before = time.time_ns() // 1_000_000
        made = uuid7()
        after = time.time_ns() // 1_000_000
        self.assertEqual((made.version, made.variant), (7, "specified in RFC 4122"))
        # Others may have been made in the same millisecond: then it is some 1/4096 ms ahead.
        self.assertTrue(before <= made.int >> 80 <= after + 1)

    def test_order(self):
        """Each is greater than the last, although the clock stands still or is set back."""
        now = time.time_ns()
        clock = [now] * 5000 + [now - 10**9] * 5000
        with mock.patch.object(module, "_last", 0), mock.patch.object(module, "time") as standing:
            standing.time_ns.side_effect = clock
            made = [uuid7() for _ in clock]
        self.assertEqual(made, sorted(set(made)))

    def test_threads(self):
        with ThreadPoolExecutor(max_workers=4) as pool:
            made = list(pool.map(lambda _: uuid7(), range(10_000)))
        self.assertEqual(len(set(made)), 10_000)
