"""Freed memory is kept for the next call, so that large temporary arrays cost no page faults.

A compiled gradient allocates and frees the same large arrays at every call.  glibc gives freed memory of more than some
128 KB to some MB back to the system, which then hands it out again page by page, cleared: for arrays of 8 MB that
takes longer than the arithmetic on them (a softmax cross-entropy of 10000 x 100: 11.5 ms, of which 8 for 3900 page
faults).  Two thresholds tell it to keep more.  They hold for the whole process and raise only what it keeps, not
what it needs; `GRADSMITH_KEEP_MEMORY=0` leaves them alone.  Other C libraries have no such thresholds, or need none.

Reference: mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD.
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3         # names of parameters in malloc.h
KEPT = 256 << 20                                # bytes at the top of the heap that are not given back
SMALLEST_MAPPING = 32 << 20                     # bytes of an array from which it is a mapping of its own: glibc's most


def keep_freed_memory() -> bool:
    """Set the thresholds; whether they were set."""
    if os.environ.get("GRADSMITH_KEEP_MEMORY", "1") == "0" or not _is_glibc():
        return False
    if {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & os.environ.keys():
        return False        # the user has chosen
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT) and mallopt(MMAP_THRESHOLD, SMALLEST_MAPPING))


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError, OSError):       # Windows, or a system that has no such name
        return False
