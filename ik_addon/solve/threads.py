"""How many threads numpy's linear algebra takes."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads",
)
"""What the functions of OpenBLAS are called, depending on how it was built."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep numpy from sharing out its linear algebra among threads, where it has OpenBLAS for that.

    The matrices of a body are so small that one thread is as fast as several. But several wait for each other after
    each of many thousand parts, and where another program keeps a core busy that takes ten to twenty times as long.
    """
    known = _functions()
    before = known[0]() if known else 1
    if known is None or before == 1:
        yield
        return
    known[1](1)
    try:
        yield
    finally:
        known[1](before)


@cache
def _functions() -> tuple[Any, Any] | None:
    """Return the functions that tell and set the number of threads; None where there are none."""
    spec = importlib.util.find_spec("numpy.linalg._umath_linalg")
    if spec is None or spec.origin is None:
        return None
    try:
        library = ctypes.CDLL(spec.origin)  # whose functions include those of what it was linked to
    except OSError:
        return None
    for name in _NAMES:
        if hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
