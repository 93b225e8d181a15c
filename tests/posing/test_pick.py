"""Picking the bone under the mouse, by the lines that bones are on the screen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests.conftest import Addon

NEAR = 10.0


ARM = [[(0, 0, 0.5), (50, 0, 0.5)], [(50, 0, 0.5), (100, 0, 0.5)]]
NAN = float("nan")
BEHIND, BEFORE = [(0, 0, 0.7), (50, 0, 0.7)], [(0, 0, 0.3), (50, 0, 0.3)]
FOUND: Any = (
    (ARM, (20, 5), 0),
    (ARM, (80, -5), 1),
    (ARM, (50, 3), 1),  # a joint belongs to the child
    (ARM, (20, 11), None),
    (ARM, (-9, 0), 0),
    (ARM, (-11, 0), None),
    ([[(0, 0, 0.5), (500, 0, 0.5)]], (250, 40), 0),  # a long bone is as wide as it is drawn
    ([BEHIND, BEFORE], (20, 0), 1),  # of two bones the one nearer to the viewer
    ([BEFORE, BEHIND], (20, 0), 0),
    ([[(NAN, NAN, NAN), (50, 0, 0.5)]], (20, 0), None),  # behind the viewer
    ([[(20, 0, 0.5), (20, 0, 0.5)]], (25, 0), 0),  # of zero length
)
"""Lines of bones on the screen, a place, and the bone that is found there."""


def test_the_nearest_bone_is_found_within_some_pixels(addon: Addon) -> None:
    for lines, place, index in FOUND:
        found = addon.module("posing.pick").nearest(np.array(lines, dtype=float), np.array(place), NEAR)
        assert found == index, (lines, place)


@pytest.fixture
def seen(human: bpy.types.Object) -> Any:
    """Return the human metarig, seen from the front in a region of 1000 by 1000 pixels, with 400 pixels per meter."""
    bpy.ops.object.mode_set(mode="POSE")
    view = Matrix(((1, 0, 0, 0), (0, 0, 1, -1), (0, -1, 0, -10), (0, 0, 0, 1)))
    matrix = Matrix.Diagonal((0.8, 0.8, -0.01, 1.0)) @ view
    return SimpleNamespace(
        region=SimpleNamespace(width=1000, height=1000),
        region_data=SimpleNamespace(perspective_matrix=matrix),
        visible_pose_bones=bpy.context.visible_pose_bones,
        preferences=bpy.context.preferences,
    )


def test_bones_of_an_armature_are_found_in_a_view(addon: Addon, human: bpy.types.Object, seen: Any) -> None:
    module = addon.module("posing.pick")
    bone = human.pose.bones["forearm.L"]
    for share, use_tail in ((0.2, False), (0.8, True)):
        place = human.matrix_world @ bone.head.lerp(bone.tail, share)
        pixel = Vector((500.0 + 400.0 * place.x, 500.0 + 400.0 * (place.z - 1.0)))
        found = module.picked(seen, pixel)
        assert (found.bone.name, found.use_tail) == ("forearm.L", use_tail)
        ends = [(500.0 + 400.0 * end.x, 500.0 + 400.0 * (end.z - 1.0)) for end in (bone.head, bone.tail)]
        assert np.allclose(found.ends, ends, atol=1e-2)
    assert module.picked(seen, Vector((20.0, 20.0))) is None
    human.data.bones["forearm.L"].hide_select = True
    found = module.picked(seen, pixel)
    assert found is None or found.bone.name != "forearm.L"


def test_under_a_target_the_joint_that_follows_it_is_found(addon: Addon, human: bpy.types.Object, seen: Any) -> None:
    module = addon.module("posing.pick")
    assert bpy.ops.ik_addon.character_setup(regions={"ARM"}, controls="BONES") == {"FINISHED"}
    target = human.pose.bones["forearm.L"].ik_addon.target_bone
    assert module.target_bones([human])[human.pose.bones[target]].name == "forearm.L"
    view = SimpleNamespace(**{**vars(seen), "visible_pose_bones": list(human.pose.bones)})
    place, *ends = module.on_screen(view, [human.pose.bones[name] for name in (target, "forearm.L")])[:, :, :2]
    wrist, elbow = Vector(place[0]), Vector(ends[0][0])
    for share in (0.0, 8.0 / (elbow - wrist).length):  # at the wrist, and a few pixels up the arm
        found = module.picked(view, wrist.lerp(elbow, share))
        assert found is not None
        assert (found.bone.name, found.use_tail) == ("hand.L", False)
    found = module.picked(view, wrist.lerp(elbow, 0.3))
    assert found is not None
    assert (found.bone.name, found.use_tail) == ("forearm.L", True)
