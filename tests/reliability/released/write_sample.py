"""Write a file as this version saves it, and its content as JSON: `python3 tools/dev.py release-sample`.

One sample is kept for each released version, so that every later version proves that it can read it. The sample of
a released version is never written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bpy

from tests import rigs
from tools import blender, version

FOLDER = Path(__file__).resolve().parent
FRAMES = (1, 8, 20)
SHOWN = 8
"""The frame on which the file opens."""

# The type stubs of bpy do not know what the extension adds to Blender.
OPERATORS: Any = bpy.ops


def live_limb() -> None:
    """A live chain of three bones in three rotation modes: keyed, posed by hand and at rest."""
    ob = named(rigs.armature(), "Live")
    rigs.add_bones(ob, rigs.bent(3), ["a", "b", "c"])
    target, pole = rigs.empty("Live Target"), rigs.empty("Live Pole", (2.0, 1.0, 0.5))
    rigs.key(target, "location", {1: (0.6, 0.5, 1.6), 20: (-0.5, 0.9, 1.8)})
    bones = ob.pose.bones
    bones["b"].rotation_mode, bones["c"].rotation_mode = "XZY", "AXIS_ANGLE"
    rigs.key(bones["a"], "rotation_quaternion", {1: (1.0, 0.0, 0.0, 0.0), 20: (0.9, 0.1, 0.3, -0.2)})
    bones["b"].rotation_euler = (0.3, -0.7, 0.11)
    tip = rigs.chain(
        ob,
        "c",
        target,
        3,
        pole=pole,
        pole_angle=0.4,
        softness=0.05,
        iterations=77,
        tolerance=2e-6,
        out_of_reach="STRETCH",
        use_limits=False,
        push_limit=0.125,
    )
    for frame, influence in ((1, 0.0), (20, 1.0)):
        tip.ik_addon.influence = influence
        ob.keyframe_insert(f"{tip.path_from_id()}.ik_addon.influence", frame=frame)


def solved_arm() -> None:
    """A chain to be solved by the button."""
    ob = named(rigs.armature(), "Solved")
    rigs.add_bones(ob, [(3, 0, 0), (3, -0.2, 1), (3, 0, 2)], ["upper", "lower"])
    ob.pose.bones["upper"].rotation_quaternion = (0.98, 0.0, 0.17, 0.1)
    rigs.chain(ob, "lower", rigs.empty("Solved Target", (3.6, 0.5, 1.0)), 2, solver="TWO_BONE", planar=True)
    move_by_hand(ob)


def move_by_hand(ob: bpy.types.Object) -> None:
    """Move the arm after it was solved; the change belongs to its FK pose."""
    ob.pose.bones["lower"].scale = (1.0, 1.25, 1.0)


def tree_on_controls() -> None:
    """Two chains that share a bone and follow the bones of another armature; a third chain is disabled."""
    controls = named(rigs.armature(), "Controls")
    rigs.add_bones(controls, [(-3.8, 0, 2.0), (-3.8, 0, 2.5)], ["hand.L"])
    rigs.add_bones(controls, [(-2.2, 0, 2.0), (-2.2, 0, 2.5)], ["hand.R"])
    ob = named(rigs.armature(), "Tree")
    rigs.add_bones(ob, [(-3, 0, 0), (-3, 0, 1)], ["spine"])
    for side, x in (("L", -1.0), ("R", 1.0)):
        rigs.add_bones(ob, [(-3, 0, 1), (-3 + 0.5 * x, 0, 1.4), (-3 + x, 0, 1.8)], [f"a.{side}", f"b.{side}"], "spine")
        rigs.chain(ob, f"b.{side}", controls, 3, target_bone=f"hand.{side}", weight=2.0 if side == "L" else 1.0)
    rigs.chain(ob, "a.L", controls, 1, target_bone="hand.R", enabled=False)
    ob.pose.bones["b.L"].rotation_quaternion = (0.9, 0.2, 0.3, -0.1)


def named(ob: bpy.types.Object, name: str) -> bpy.types.Object:
    """Return the object with this name."""
    ob.name = ob.data.name = name
    return ob


def armatures() -> list[bpy.types.Object]:
    """All armature objects of the file."""
    return sorted((ob for ob in bpy.data.objects if ob.type == "ARMATURE"), key=lambda ob: ob.name)


def channels() -> dict[str, list[float]]:
    """The channels of every armature, as numbers that JSON preserves exactly."""
    return {ob.name: rigs.channels(ob).tolist() for ob in armatures()}


def poses() -> dict[str, dict[str, list[float]]]:
    """The evaluated pose matrices of every armature on some frames."""
    found: dict[str, dict[str, list[float]]] = {}
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found[str(frame)] = {ob.name: rigs.pose(ob).tolist() for ob in armatures()}
    return found


def settings() -> dict[str, dict[str, Any]]:
    """The settings of every chain, by armature and tip bone; objects by their names."""
    found = {}
    for ob in armatures():
        for bone in ob.pose.bones:
            if bone.ik_addon.is_chain:
                names = [p.identifier for p in bone.ik_addon.bl_rna.properties if p.identifier not in UNTOLD]
                values = {name: getattr(bone.ik_addon, name) for name in names}
                found[f"{ob.name}/{bone.name}"] = {name: getattr(v, "name", v) for name, v in values.items()}
    return found


UNTOLD = {"rna_type", "name", "base"}
"""Properties of a chain that are not settings."""


def main() -> None:
    """Write the sample and its expected content."""
    blender.enable()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    for build in (live_limb, solved_arm, tree_on_controls):
        build()
    bpy.context.scene.frame_set(SHOWN)
    fk = channels()
    solved = bpy.data.objects["Solved"]
    solved.pose.bones["lower"].scale = (1.0, 1.0, 1.0)
    bpy.context.view_layer.objects.active = solved
    OPERATORS.ik_addon.solve()
    move_by_hand(solved)
    for name in ("Live", "Tree"):
        bpy.data.objects[name].ik_addon.live = True
    found: dict[str, Any] = {"fk": fk, "poses": poses()}
    bpy.context.scene.frame_set(SHOWN)
    found["settings"] = settings()
    path = FOLDER / f"{version.current()}.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True)
    path.with_suffix(".json").write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
    blender.leave(0)
