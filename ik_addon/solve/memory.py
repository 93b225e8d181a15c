"""Make the C library reuse the memory of short-lived arrays."""

from functools import cache

import numpy as np

LARGE = 32_000_000
"""Bytes; a little less than the largest block to which glibc's malloc adapts."""


@cache
def keep_freed_memory() -> None:
    """Make glibc's malloc keep freed memory for the next arrays, instead of giving it back to the system.

    Does so once a process. The solvers allocate and free arrays of some hundred kilobytes all the time. Memory from the
    system is mapped page by page, which takes longer than the computation in it. malloc keeps blocks up to the size of
    the largest one freed so far (mallopt(3), M_MMAP_THRESHOLD), so it is enough to free one large block; nothing is
    ever written to it.
    """
    np.empty(LARGE, dtype=np.uint8)
