"""Freed matrices that stay with the process, where rows make and drop many of them."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # numbers of these settings in glibc's malloc.h
LARGEST = 32 * 2**20  # bytes of a matrix that is taken from the process's own memory
KEPT = 512 * 2**20  # bytes of free memory that are not handed back


@cache
def keep_freed_memory() -> None:
    """Have the process keep what it frees, once for all; where its library knows no such setting nothing happens.

    Without it the system takes every large matrix back and clears it anew for the next row, which costs more than the
    algebra.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, LARGEST)
        library.mallopt(TRIM_THRESHOLD, KEPT)
