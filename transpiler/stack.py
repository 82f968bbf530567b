"""Room for deep recursion: long chains of statements and recursive programs are followed by recursive functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

STACK = 30_000                # Python frames: one interpreted call takes about fifteen
_lock = Lock()
_users = 0
_before = 0


@contextmanager
def deep_stack() -> Iterator[None]:
    """Raise Python's recursion limit; it is put back when the last user in any thread leaves.  Also a decorator."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, STACK))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_before)
