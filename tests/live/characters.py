"""Live armatures that can be solved in advance, with targets that move: single chains, and bodies with two limbs."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import bpy
import numpy as np

from tests import rigs

LAST = 60
HELD = (50, LAST)
"""Frames on which nothing moves."""

Build = Callable[[], bpy.types.Object]


def place(frame: int) -> tuple[float, float, float]:
    """Return where the target is on a frame."""
    return 0.7 * math.sin(0.2 * frame), 0.5 * math.cos(0.17 * frame), 0.4 + 0.3 * math.sin(0.1 * frame)


def rig(bones: int = 5, **settings: object) -> bpy.types.Object:
    """Return an armature with a chain whose target circles, at times out of reach."""
    ob = rigs.limb(rigs.bent(bones, 1.0 / bones, 0.3), [f"b{i}" for i in range(bones)])
    target = rigs.empty("target")
    rigs.key(target, "location", {f: place(f) for f in range(1, HELD[0] + 1, 7)})
    rigs.chain(ob, f"b{bones - 1}", target, bones, **settings)
    bpy.context.view_layer.update()
    return ob


def with_limits(**settings: object) -> bpy.types.Object:
    """Return a chain whose bones have limits."""
    ob = rig(use_limits=True, **settings)
    for bone in ob.pose.bones:
        rigs.limit(bone, x=(-17, 52), z=(-29, 23))
    return ob


def stiff(**settings: object) -> bpy.types.Object:
    """Return a chain whose first bones are stiff."""
    ob = rig(6, solver="EVEN_BEND", use_limits=True, **settings)
    for name in ("b0", "b1", "b2"):
        ob.pose.bones[name].ik_stiffness_x, ob.pose.bones[name].ik_stiffness_z = 0.9, 0.5
    return ob


def with_pole() -> bpy.types.Object:
    """Return a chain with a pole that moves."""
    pole = rigs.empty("pole")
    rigs.key(pole, "location", {1: (0.0, 2.0, 0.5), 40: (2.0, 1.0, 0.5)})
    return rig(3, pole=pole)


def stretched() -> bpy.types.Object:
    """Return a chain that stretches."""
    ob = rig(3, out_of_reach="STRETCH")
    for bone in ob.pose.bones:
        bone.ik_stretch = 0.5
    return ob


def in_other_modes() -> bpy.types.Object:
    """Return a chain of bones in three rotation modes."""
    ob = rig(4, softness=0.2)
    ob.pose.bones["b1"].rotation_mode = "XYZ"
    ob.pose.bones["b2"].rotation_mode = "AXIS_ANGLE"
    return ob


def tree() -> bpy.types.Object:
    """Return two chains that share bones."""
    ob = rig(4)
    rigs.add_bones(ob, [(0.3, 0.0, 0.5), (0.5, 0.0, 0.8), (0.7, 0.1, 1.0)], ["c0", "c1"], parent="b1", connect=False)
    other = rigs.empty("other")
    rigs.key(other, "location", {1: (0.6, 0.2, 0.9), 30: (0.4, -0.3, 0.8)})
    rigs.chain(ob, "c1", other, 4)
    return ob


def parented() -> bpy.types.Object:
    """Return an armature whose world matrix is a product, and has other bits in double than in single precision."""
    ob = rig()
    above, top = rigs.empty("above", (0.31, -0.17, 0.73)), rigs.empty("top", (1.3, 0.6, 0.2))
    above.rotation_euler, above.scale, above.parent = (0.3, 1.1, -0.7), (1.3, 0.7, 1.1), top
    top.rotation_euler, ob.rotation_euler, ob.parent = (-0.8, 0.37, 1.9), (0.1, 0.57, 0.29), above
    bpy.context.view_layer.update()
    return ob


KINDS: Mapping[str, Build] = {
    "free": rig,
    "limits": with_limits,
    "pole": with_pole,
    "stretched": stretched,
    "pushed": partial(rig, 2, out_of_reach="PUSH_ROOT", push_limit=0.2),
    "other modes": in_other_modes,
    "planar": partial(rig, 6, planar=True),
    "planar, led from the tip": partial(rig, 6, solver="EVEN_BEND", bend_lead=1.0, planar=True),
    "led from the root": partial(rig, 6, solver="EVEN_BEND", bend_lead=-0.7),
    "fabrik": partial(rig, 6, solver="FABRIK"),
    "fabrik with its target's rotation": partial(rig, 6, solver="FABRIK", use_rotation=True),
    "planar fabrik": partial(rig, 6, solver="FABRIK", planar=True),
    "fabrik with limits": partial(with_limits, solver="FABRIK"),
    "stiff": stiff,
    "planar and stiff": partial(stiff, planar=True),
    "half on": partial(rig, 4, influence=0.5),
    "tree": tree,
    "parented": parented,
}
"""Single chains; Live is off."""


def character(*, keyed: tuple[str, ...] = (), controls: bool = False) -> bpy.types.Object:
    """Return a live body with two limbs of two bones, with poles; bones whose names begin as in `keyed` have keys."""
    ob = rigs.limb([(0.0, 0.0, 0.9), (0.0, 0.0, 1.3), (0.0, 0.0, 1.7)], ["body.hips", "body.chest"])
    for side, x in (("L", 0.3), ("R", -0.3)):
        points = [(x, 0.0, 1.6), (1.5 * x, -0.05, 1.3), (1.7 * x, 0.0, 1.0)]
        rigs.add_bones(ob, points, [f"limb.upper.{side}", f"limb.lower.{side}"], parent="body.chest", connect=False)
        if controls:
            rigs.add_bones(ob, [(1.7 * x, 0.0, 1.0), (1.7 * x, 0.1, 1.0)], [f"control.target.{side}"])
            rigs.add_bones(ob, [(1.6 * x, 1.0, 1.3), (1.6 * x, 1.1, 1.3)], [f"control.pole.{side}"], parent="body.hips")
            goals = {"target_bone": f"control.target.{side}", "pole": ob, "pole_bone": f"control.pole.{side}"}
            rigs.chain(ob, f"limb.lower.{side}", ob, 2, **goals)
        else:
            target, pole = rigs.empty(f"target.{side}"), rigs.empty(f"pole.{side}", (1.6 * x, 1.0, 1.3))
            keys = {f: (1.7 * x + 0.2 * math.sin(0.3 * f), 0.2 * math.cos(f), 1.1) for f in range(1, LAST, 9)}
            rigs.key(target, "location", keys)
            rigs.key(pole, "location", {1: (1.6 * x, 1.0, 1.3), LAST: (1.6 * x, 0.8, 1.6)})
            rigs.chain(ob, f"limb.lower.{side}", target, 2, pole=pole)
    rng = np.random.default_rng(7)
    for bone in ob.pose.bones:
        bone.rotation_mode = "XYZ" if bone.name == "limb.lower.R" else "QUATERNION"
        if not bone.name.startswith((*keyed, "control")):
            continue
        for frame in (1, 20, 41, LAST):
            bone.location = rng.normal(scale=0.1, size=3)
            bone.rotation_quaternion = (1.0, *rng.normal(scale=0.2, size=3))
            bone.rotation_euler = rng.normal(scale=0.2, size=3)
            turn = "rotation_euler" if bone.rotation_mode == "XYZ" else "rotation_quaternion"
            for path in ("location", turn, "scale"):
                bone.keyframe_insert(path, frame=frame)
    bpy.context.view_layer.update()
    ob.ik_addon.live = True
    return ob


all_keyed = partial(character, keyed=("body", "limb"))
body_keyed = partial(character, keyed=("body",))
with_controls = partial(character, keyed=("body", "limb"), controls=True)


def with_attached_goals() -> bpy.types.Object:
    """Return a character with poles on a bone and rotating targets; the left limb takes its target's rotation."""
    ob = all_keyed()
    for side in ("L", "R"):
        pole, target = bpy.data.objects[f"pole.{side}"], bpy.data.objects[f"target.{side}"]
        pole.parent, pole.parent_type, pole.parent_bone = ob, "BONE", "body.hips"
        target.rotation_mode = "ZXY"
        rigs.key(target, "rotation_euler", {1: (0.3, 0.1, 0.0), LAST: (-0.4, 0.6, 0.9)})
        ob.pose.bones[f"limb.lower.{side}"].ik_addon.use_rotation = side == "L"
    return ob


def with_keyed_influence() -> bpy.types.Object:
    """Return a character whose left limb is switched on by a key."""
    ob = all_keyed()
    rigs.key(ob.pose.bones["limb.lower.L"], "ik_addon.influence", {1: 0.0, 30: 1.0})
    return ob


def on_the_move() -> bpy.types.Object:
    """Return a character whose armature object moves."""
    ob = body_keyed()
    rigs.key(ob, "location", {1: (0.0, 0.0, 0.0), LAST: (0.1, 0.2, 0.0)})
    rigs.key(ob, "rotation_euler", {1: (0.0, 0.0, 0.0), LAST: (0.1, 0.0, 0.3)})
    return ob


def with_keys_of_another_rotation_mode() -> bpy.types.Object:
    """Return a character with keys on channels that its rotation modes do not use."""
    ob = all_keyed()
    for name in ("body.chest", "limb.upper.L", "limb.lower.R"):
        rigs.key(ob.pose.bones[name], "rotation_axis_angle", {1: (0.2, 1.0, 0.0, 0.0), LAST: (1.4, 1.0, 0.0, 0.0)})
    return ob


CHARACTERS: Mapping[str, Build] = {
    "all keyed": all_keyed,
    "keys of another rotation mode": with_keys_of_another_rotation_mode,
    "body keyed": body_keyed,
    "one limb keyed": partial(character, keyed=("body", "limb.upper.L", "limb.lower.L")),
    "controls": with_controls,
    "only controls": partial(character, controls=True),
    "attached goals": with_attached_goals,
    "keyed influence": with_keyed_influence,
    "on the move": on_the_move,
}
"""Bodies whose playback is solved in advance; Live is on."""
