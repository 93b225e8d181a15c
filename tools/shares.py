"""Sharing out the cases of a test among the Blenders, where the suite runs on several of them.

A test with many cases alike, such as seeds, costs the same on each Blender and rarely fails on one alone. Marked with
`pytest.mark.shared`, each Blender runs some of its cases, and all of them together run each case once.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

VARIABLE = "IK_ADDON_TESTS_SHARE"
"""The environment variable that tells a run its share; without it, a run has all cases."""


def named(own: int, among: int) -> str:
    """Return the value of `VARIABLE` for one of several runs, counted from 0."""
    return f"{own}/{among}"


def own_cases(cases: Iterable[str], share: str) -> set[str]:
    """Return the cases of one test, by their names, that a run has.

    They are mixed first, because neighbours differ in the parameter that comes last.

    Raises:
        ValueError: if there are fewer cases than runs, so that a run would skip the test.
    """
    own, among = map(int, share.split("/"))
    mixed = sorted(cases, key=lambda name: (crc32(name.encode()), name))
    if len(mixed) < among:
        raise ValueError(f"{len(mixed)} cases are too few for {among} Blenders: {', '.join(mixed)}")
    return set(mixed[own::among])
