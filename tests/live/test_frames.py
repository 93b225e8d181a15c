"""The pose depends on its frame alone, whichever way the frame is reached and whatever evaluates it."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.live.carried import KINDS as KINDS_OF_CARRYING
from tests.live.carried import build
from tests.live.characters import CHARACTERS, KINDS
from tests.live.test_pure import BODIES
from tests.reliability.states import whole_file_unsolved
from tests.renders import Recorder, recorder, set_up
from tests.rig.test_ends import animated_leg

__all__ = ["recorder"]
FRAMES = list(range(1, 20))
ALONE = FRAMES[::5]
"""Frames that are compared with a session that begins there."""
PARTS = (0.0, -0.25, 0.4)
"""Sub-frames that are rendered, as motion blur samples them."""
RENDERED = (12, 13)
STILL = 17.5
"""The frame on which a still is rendered, with the sub-frames around it."""


CARRIED = ("bone parent", "Copy Location along X", "driver", "vertex of a skin")


def carried(kind: str, disabled: bool = False) -> bpy.types.Object:
    """Return an arm and a spine that carries the arm's target, as one body. If `disabled`, the spine is off until 9."""
    body = build(KINDS_OF_CARRYING[kind])
    body.arm.name = "Rig"
    rigs.key(body.bend, "hide_viewport", {1: disabled, 9: False})
    return body.arm


ALL: Mapping[str, Callable[[], bpy.types.Object]] = {
    **KINDS,
    **CHARACTERS,
    **{f"target carried: {kind}": partial(carried, kind) for kind in CARRIED},
    "target carried by a spine that is off": partial(carried, CARRIED[1], disabled=True),
    **{f"body: {name}": partial(body.build, "Rig") for name, body in BODIES.items()},
    **{f"foot, keyed: {keyed}": partial(animated_leg, keyed) for keyed in ("target", "hips", "foot", "mode")},
    "arm": lambda: rigs.animated_arm()[0],
}


SOLVED_AGAIN = {"body: constraint, no keys"}
"""Their channels hold the solution, which a render finds again with other rounding."""


def rig() -> bpy.types.Object:
    return bpy.data.objects["Rig"]


def verdicts(addon: Addon) -> list[tuple[bool, str]]:
    """Return what the panel says of each chain."""
    found = [addon.report(rig(), bone.name) for bone in rig().pose.bones if bone.ik_addon.is_chain]
    return [(report.reached, report.message) for report in found]


def evaluated_again(frames: Iterable[int]) -> rigs.Poses:
    """Return poses after an update on the same frame."""
    found: rigs.Poses = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for ob in bpy.context.scene.objects:
            ob.update_tag()
        bpy.context.view_layer.update()
        found[frame] = rigs.pose(rig())
    return found


def rendered(name: str, recorder: type[Recorder], folder: Path) -> rigs.Poses:
    """Return poses of an animation and of a still, and assert that the file is as before."""
    scene = bpy.context.scene
    set_up(scene, folder)
    recorder.parts, recorder.seen = PARTS, []
    recorder.note = lambda depsgraph: rigs.pose(rig(), depsgraph)
    scene.frame_start, scene.frame_end = RENDERED
    for frame, is_animation in ((3.0, True), (STILL, False)):
        scene.frame_set(int(frame), subframe=frame % 1.0)
        before, shown = whole_file_unsolved(), {frame: rigs.pose(rig())}
        bpy.ops.render.render(animation=is_animation)
        after = whole_file_unsolved()
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        assert not {path for path in changed if not (name in SOLVED_AGAIN and ".pose.bones[" in path)}
        assert not rigs.apart({frame: rigs.pose(rig())}, shown)
    return {frame: pose for _scene, _layer, frame, pose in recorder.seen}


def baked(frames: list[int]) -> rigs.Poses:
    rigs.bake(rig(), frames[0], frames[-1])
    rig().ik_addon.live = False
    return rigs.poses_at(rig(), frames)


def ways(name: str, recorder: type[Recorder], folder: Path) -> Iterator[tuple[str, rigs.Poses]]:
    """Yield the poses that each way to frames gives; all but the last leave the file as it is."""
    disorder = random.Random(2).sample(FRAMES, len(FRAMES))
    for way, order in (("forward", FRAMES), ("backward", FRAMES[::-1]), ("in disorder", disorder), ("again", FRAMES)):
        yield f"played {way}", rigs.poses_at(rig(), order)
    yield "evaluated again", evaluated_again(disorder[:5])
    layer = bpy.context.scene.view_layers.new("Second")
    yield "with another view layer", rigs.poses_at(rig(), FRAMES[:5])
    bpy.context.scene.view_layers.remove(layer)
    yield "rendered", rendered(name, recorder, folder)
    bpy.context.scene.frame_set(9)
    bpy.ops.ed.undo_push(message="before")
    rigs.change(rig(), location=(0.1, 0.2, 0.0))
    bpy.ops.ed.undo_push(message="after")
    bpy.ops.ed.undo()
    yield "undone", {9: rigs.pose(rig())}
    yield "played after undo", rigs.poses_at(rig(), disorder[::3])
    for frame, order in ((FRAMES[-1], FRAMES[::-3]), (FRAMES[0], disorder[::3])):
        bpy.context.scene.frame_set(frame)
        rigs.save_and_open(folder / f"{frame}.blend")
        yield f"opened on frame {frame}", {frame: rigs.pose(rig())}
        yield f"played after opening on frame {frame}", rigs.poses_at(rig(), order)


@pytest.mark.parametrize("name", ALL)
def test_every_way_to_a_frame_gives_the_same_pose(
    addon: Addon, name: str, recorder: type[Recorder], tmp_path: Path
) -> None:
    registry, ob = addon.module("live.registry"), ALL[name]()
    ob.ik_addon.live = False
    bpy.context.scene.frame_set(19)
    fk = rigs.channels(ob)
    ob.ik_addon.live = True
    expected: rigs.Poses = {}
    said = {}
    for frame in [*ALONE[::-1], *(frame + part for frame in (*RENDERED, STILL) for part in PARTS), FRAMES[-1]]:
        registry.clear()  # as when the file is opened on this frame
        expected |= rigs.poses_at(ob, [frame])
        said[frame] = verdicts(addon)
    assert np.abs(expected[1] - expected[FRAMES[-1]]).max() > 0.01
    for way, found in ways(name, recorder, tmp_path):
        expected = found | expected
        assert not rigs.apart(found, {frame: expected[frame] for frame in found}), way
        if way == "played forward":
            assert verdicts(addon) == said[FRAMES[-1]]
    rig().ik_addon.live = False
    bpy.context.scene.frame_set(19)
    assert np.array_equal(rigs.channels(rig()), fk)
    rig().ik_addon.live = True
    assert not rigs.apart(baked(FRAMES), {frame: expected[frame] for frame in FRAMES}), "baked"
