"""Rest data and frames of bones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tests.conftest import Addon


def test_frames_below_a_bone_scaled_to_a_line_are_valid_or_none(addon: Addon) -> None:
    rng = np.random.default_rng(5)
    lines = rng.normal(size=(500, 3, 1)) * rng.normal(size=(500, 1, 3))
    planes = rng.normal(size=(500, 3, 2)) @ rng.normal(size=(500, 2, 3))
    for flat, some in ((lines, False), (planes, True)):
        frames = addon.module("pose.skeleton").orthonormal(flat.astype(np.float32).astype(np.float64))
        usable = np.isfinite(frames).all(axis=(1, 2))
        assert usable.any() == some
        assert np.abs(frames[usable] @ frames[usable].swapaxes(-1, -2) - np.eye(3)).max(initial=0.0) < 1e-9
