"""Measure edits that reach over a range of frames: what holds, how fast bones turn, and what a release costs.

    python -m benchmarks.ranges [--frames N] [--case NAME]...   (--case once for each)

with an interpreter that has bpy, from the project's folder; it needs the recorded walk, see `tests/recorded.py`. Drags
the hips by 5 % of a leg and a hand by a quarter of an arm on N random frames, with a range of 20, and prints a table in
Markdown. The case `proportional` makes the same changes on the current frame, and lets Blender's own Proportional
Editing in the Graph Editor change the keys around it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from ik_addon.core.key_curve import Keys, read_keys, write_keys
from ik_addon.posing.drag import Ask, BodyDrag
from ik_addon.registration import register
from ik_addon.targets.edit_range import EditRange
from tests import recorded, rigs
from tests.posing.test_range import FEET, angles, leg_of, poses, thin

Place = tuple[str, str, int]
"""Where an F-curve is: the name of its object, its data path and index."""
REACH = 20
STEP = 8
"""Frames between the keys of the blocked walk."""
CASES = ("fk", "blocked", "live", "proportional")
BONES = {"Hips": 0.05, "LeftHand": 0.25}
"""How far each is dragged, in lengths of a leg, or of an arm."""
HEAD = (
    "| case | bone | current frame | feet, median | worst | keys outside | speed, median | worst | ms, median | worst |"
)


@dataclass
class Figures:
    """What was measured in one case with one bone, on each frame; lengths in those of a leg."""

    here: list[float] = field(default_factory=list)
    """How far the current frame is from the drag."""
    feet: list[float] = field(default_factory=list)
    """How far feet are from where they were, on keyed frames."""
    outside: list[bool] = field(default_factory=list)
    """Whether keys outside of the range changed."""
    faster: list[float] = field(default_factory=list)
    """How much faster a bone turns than before, compared with the most that the edit itself turns one per frame."""
    release: list[float] = field(default_factory=list)
    """Milliseconds of processor time that a release takes."""

    def row(self, case: str, bone: str) -> str:
        """Return a line of the table."""
        feet, faster, release = (
            f"{np.median(own):.2g} | {max(own):.2g}" for own in (self.feet, self.faster, self.release)
        )
        return (
            f"| {case} | {bone} | {max(self.here):.1e} | {feet} | {sum(self.outside)} changed | {faster} | {release} |"
        )


def prepare(case: str) -> bpy.types.Object:
    """Import the walk as a case needs it."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    ob = recorded.walk()
    if case == "blocked":
        thin(ob, STEP)
    if case == "live":
        operators: Any = bpy.ops
        operators.ik_addon.character_setup(live=False, with_presets=False)
        operators.ik_addon.snap_target(chains="ALL", frame_range="SCENE")
        ob.ik_addon.live = True
    return ob


def curves() -> dict[Place, bpy.types.FCurve]:
    """Return all F-curves of all objects."""
    return {(ob.name, own.data_path, own.array_index): own for ob in bpy.data.objects for own in rigs.fcurves(ob)}


def proportionally(old: Mapping[Place, Keys], now: int) -> None:
    """Let Blender change keys around the current frame, from the channels that the armature has there."""
    found = curves()
    objects: Any = bpy.data.objects  # the stubs declare no return value
    values = {place: objects[place[0]].path_resolve(place[1])[place[2]] for place in found}
    window = bpy.context.window_manager.windows[0]
    area = window.screen.areas[0]
    area.type = "GRAPH_EDITOR"
    area.ui_type, area.spaces.active.dopesheet.show_only_selected = "FCURVES", False
    region = next(own for own in area.regions if own.type == "WINDOW")
    for curve in found.values():
        curve.hide = True
        for part in ("control_point", "left_handle", "right_handle"):
            curve.keyframe_points.foreach_set(f"select_{part}", np.zeros(len(curve.keyframe_points), dtype=bool))
    for place, curve in found.items():
        key = int(np.argmin(np.abs(old[place]["co"][:, 0] - now)))
        change = values[place] - old[place]["co"][key, 1]
        curve.hide = False
        curve.keyframe_points[key].select_control_point = True
        size = np.degrees(change) if "euler" in place[1] else change  # as the editor shows it
        settings = {"use_proportional_edit": True, "proportional_size": REACH, "proportional_edit_falloff": "SMOOTH"}
        with bpy.context.temp_override(window=window, area=area, region=region):
            bpy.ops.transform.translate(value=(0.0, size, 0.0), **settings)
        curve.hide = True
        curve.keyframe_points[key].select_control_point = False


def measure(case: str, bone: str, count: int) -> Figures:
    """Drag a bone on some frames, and put everything back after each."""
    ob, found, random = prepare(case), Figures(), np.random.default_rng(1)
    scene, names, leg = bpy.context.scene, [own.name for own in ob.pose.bones], leg_of(ob)
    arm = ob.pose.bones["LeftArm"].length + ob.pose.bones["LeftForeArm"].length
    unit = leg if bone == "Hips" else arm
    feet, old = [names.index(foot) for foot in FEET], {place: read_keys(curve) for place, curve in curves().items()}
    for _ in range(count):
        now = int(random.integers(40, 440))
        offset = Vector(random.normal(size=3)).normalized() * BONES[bone] * unit
        frames = range(now - REACH - 2, now + REACH + 3)
        scene.frame_set(now)
        before = poses(ob, frames)
        drag = BodyDrag(bpy.context, ob, Ask(bone, reach=EditRange(0 if case == "proportional" else REACH)))
        drag.move(bpy.context, offset)
        start = time.perf_counter()
        drag.finish(bpy.context)
        found.release.append(1e3 * (time.perf_counter() - start))
        bpy.context.view_layer.update()
        dragged = np.array([np.array(own.matrix) for own in rigs.evaluated(ob).pose.bones])
        if case == "proportional":
            proportionally(old, now)
        after, here = poses(ob, frames), REACH + 2
        ends = now - REACH, now, now + REACH
        is_keyed = [case != "blocked" or frame % STEP == 0 or frame in ends for frame in frames]
        keyed = np.flatnonzero(is_keyed)
        found.here.append(float(np.abs(after[here] - dragged).max()) / leg)
        found.feet.append(float(np.linalg.norm((after - before)[keyed][:, feet, :3, 3], axis=-1).max()) / leg)
        turned, turned_before = (angles(own[keyed[1:]], own[keyed[:-1]]) for own in (after, before))
        faster = (turned - turned_before) / np.diff(keyed)[:, None]
        found.faster.append(float(faster.max()) / (1.5 / REACH * float(angles(dragged, before[here]).max())))
        found.outside.append(is_changed(old, now))
        for place, curve in curves().items():
            write_keys(curve, old[place])
    return found


def is_changed(old: Mapping[Place, Keys], now: int) -> bool:
    """Whether keys outside of the range have changed."""

    def outside(keys: Keys) -> NDArray[Any]:
        return keys["co"][np.abs(keys["co"][:, 0] - now) > REACH + 0.5]

    return any(not np.array_equal(outside(read_keys(own)), outside(old[place])) for place, own in curves().items())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure edits that reach over a range of frames.")
    parser.add_argument("--frames", type=int, default=50, help="random frames of each row")
    parser.add_argument("--case", action="append", choices=CASES)
    options = parser.parse_args(arguments)
    register()
    rows = [measure(case, bone, options.frames).row(case, bone) for case in options.case or CASES for bone in BONES]
    print("\n".join([HEAD, "|---" * (HEAD.count("|") - 1) + "|", *rows]))


if __name__ == "__main__":
    main()
