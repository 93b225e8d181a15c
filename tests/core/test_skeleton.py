"""Rest data and frames of bones."""

import numpy as np

from tests import rigs
from tests.conftest import Addon


def test_frames_below_a_bone_scaled_to_a_line_are_valid_or_none(addon: Addon) -> None:
    rng = np.random.default_rng(5)
    lines = rng.normal(size=(500, 3, 1)) * rng.normal(size=(500, 1, 3))
    planes = rng.normal(size=(500, 3, 2)) @ rng.normal(size=(500, 2, 3))
    for flat, some in ((lines, False), (planes, True)):
        frames = addon.module("core.skeleton").orthonormal(flat.astype(np.float32).astype(np.float64))
        usable = np.isfinite(frames).all(axis=(1, 2))
        assert usable.any() == some
        assert np.abs(frames[usable] @ frames[usable].swapaxes(-1, -2) - np.eye(3)).max(initial=0.0) < 1e-9


def test_rounding_does_not_mirror_frames_below_a_bone_scaled_to_a_plane(addon: Addon) -> None:
    rng = np.random.default_rng(6)
    above = rng.normal(size=(500, 3, 3)).astype(np.float32) * np.array([1.0, 1.0, 0.0], dtype=np.float32)
    poses = (above @ rng.normal(size=(500, 3, 3)).astype(np.float32)).astype(np.float64)
    assert (np.linalg.det(poses) < 0.0).any()
    frames = addon.module("core.skeleton").orthonormal(poses)
    assert (np.linalg.det(frames[np.isfinite(frames).all(axis=(1, 2))]) > 0.0).all()
    mirrored = rng.normal(size=(500, 3, 3))
    mirrored[..., 0] *= -np.sign(np.linalg.det(mirrored))[:, None]
    assert (np.linalg.det(addon.module("core.skeleton").orthonormal(mirrored)) < 0.0).all()


def test_a_bone_that_stands_still_follows_each_pose_of_its_parent(addon: Addon) -> None:
    ob, _target = rigs.arm()
    ob.data.bones["lower"].use_inherit_rotation = False
    to_pose, still = addon.module("core.skeleton").Skeleton.of(ob).to_pose, np.eye(4)[None]
    above = np.random.default_rng(7).normal(size=(3, 4, 4))
    alone = [to_pose(ob, 1, still, each[None])[0] for each in above]
    assert np.allclose(to_pose(ob, 1, still, above), alone)
