"""How the C library treats the memory of arrays that come and go."""

import numpy as np

LARGE = 32_000_000
"""Bytes, somewhat less than the most that glibc's malloc adapts to."""


def keep_freed_memory() -> None:
    """Have freed memory kept for the next arrays, where glibc's malloc would give it back to the system.

    The solvers free and ask for arrays of some hundred kilobytes all the time. Memory that comes from the system is
    mapped page by page, which takes longer than what is computed in it. malloc keeps blocks up to the size of the
    largest that was freed (mallopt(3), M_MMAP_THRESHOLD), so that one is enough, which nothing is ever written to.
    """
    np.empty(LARGE, dtype=np.uint8)
