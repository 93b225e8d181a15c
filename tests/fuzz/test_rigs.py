"""Random scenes and edits; `make fuzz ARGS=rigs` runs many more."""

from __future__ import annotations

import pytest

from .edits import check_seed

RENAMED = (3400242, 3600367)
"""Scenes in which a bone is renamed in one of several armatures that share an action, so that others lose F-curves."""


@pytest.mark.parametrize("seed", [*range(6), *RENAMED])
def test_random_scenes_survive_random_edits(seed: int) -> None:
    check_seed(seed)
