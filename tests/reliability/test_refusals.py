"""An operator that refuses leaves nothing behind: the whole file is as before, and so are modes and the selection."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.faults import FAULTS, Limb
from tests.reliability.states import whole_file
from tests.rig.test_followers import with_chains

# ---- set-ups in which many operators refuse


def arms() -> bpy.types.Object:
    """Set up two arms with hands and chains in Pose Mode, the left one keyed, beside another armature in Pose Mode."""
    other = rigs.limb(rigs.bent(2), ["a", "b"], name="Other")
    ob = with_chains()
    rigs.key(ob.pose.bones["upper_arm.L"], "rotation_quaternion", {1: (1, 0, 0, 0), 9: (0.9, 0.1, 0.3, 0)})
    rigs.key(ob.pose.bones["forearm.L"].ik_addon.target, "location", {1: (0.9, 0, 1), 9: (0.8, 0.2, 1.1)})
    rigs.select(ob, other)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.scene.frame_end = 9
    bpy.context.scene.frame_set(3)
    return ob


def goal(ob: bpy.types.Object, role: str = "target") -> bpy.types.Object:
    found: bpy.types.Object = getattr(ob.pose.bones["forearm.L"].ik_addon, role)
    return found


def excluded_controls(ob: bpy.types.Object) -> None:
    for layer in bpy.context.view_layer.layer_collection.children:
        layer.exclude = True
    for side in "LR":
        ob.pose.bones[f"forearm.{side}"].ik_addon.is_chain = False


def no_chain(ob: bpy.types.Object, bone: str, **values: object) -> None:
    """Remove a chain's mark, and set values of its bone or of the armature."""
    rigs.change(ob.pose.bones[bone] if bone else ob, **values)
    ob.pose.bones["forearm.L"].ik_addon.is_chain = False


def hidden_hand(ob: bpy.types.Object) -> None:
    ob.pose.bones["hand.L"].scale = (0.0,) * 3
    ob.pose.bones["forearm.L"].ik_addon.end_bone = ""


def fault(name: str, ob: bpy.types.Object) -> object:
    return FAULTS[name].make(Limb(ob.pose.bones["forearm.L"]))


def no_bones(ob: bpy.types.Object) -> None:
    bpy.ops.object.mode_set(mode="OBJECT")
    ob.data.bones.active = None


def sampled(ob: bpy.types.Object) -> None:
    for curve in (*rigs.fcurves(ob), *rigs.fcurves(goal(ob))):
        curve.convert_to_samples(1, 9)


SETUPS: dict[str, Callable[[bpy.types.Object], object]] = {
    **{
        name: partial(fault, name)
        for name in (
            *("no target", "flat armature", "target nowhere", "rest position"),
            *("two constraints", "driver", "wrong end bone"),
        )
    },
    "lost target": lambda ob: rigs.delete(goal(ob)),
    "lost pole": lambda ob: rigs.delete(goal(ob, "pole")),
    "locked target": lambda ob: setattr(goal(ob), "lock_location", (True,) * 3),
    "driven target": lambda ob: goal(ob).driver_add("location", 0),
    "excluded controls": excluded_controls,
    "no chain on a hidden bone": lambda ob: no_chain(ob, "forearm.L", scale=(0.0,) * 3),
    "no chain in a hidden armature": lambda ob: no_chain(ob, "", scale=(0.0,) * 3),
    "odd names": lambda ob: setattr(ob.pose.bones["upper_arm.R"], "name", "something else"),
    "hidden hand": hidden_hand,
    "no bones": no_bones,
    "sampled": sampled,
    "strips": lambda ob: [rigs.into_strip(own) for own in (ob, goal(ob))],
}
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "chain_add": ({}, {"controls": "BONES"}, {"tip": "spine", "chain_length": 1}, {"tip": "nothing"}),
    "character_setup": ({}, {"controls": "BONES"}),
    "fix": ({}, {"tip": "forearm.L"}, {"tip": "forearm.R"}, {"tip": "nothing"}),
    "chain_select": ({"tip": "nothing"},),
    "setting_key": ({"tip": "forearm.L", "setting": "influence"}, {"tip": "nothing", "setting": "influence"}),
    "follow_rotation": ({}, {"snap": True}, {"to": "TIP"}),
    "snap_target": ({}, {"frame_range": "SCENE"}),
    "apply_pose": ({}, {"frame_range": "SCENE"}),
    "switch_ik_fk": ({"to": "FK"}, {"to": "IK"}, {}),
    "bake": ({}, {"smooth": True}, {"reduce_keys": True, "new_action": True}, {"frame_range": "SCENE"}),
}
APART = {"preset_add", "body_grab", "body_hold", "body_move", "goal_hold", "goal_move", "goal_turn"}
"""They write a file of the user's, or are parts of a gesture with the mouse."""


def operators() -> list[str]:
    return sorted(name for name in dir(bpy.ops.ik_addon) if name not in APART)


@pytest.mark.parametrize("setup", SETUPS)
def test_an_operator_that_refuses_leaves_nothing_behind(setup: str, tmp_path: Path) -> None:
    refused, left = set(), []
    file, before = str(tmp_path / "before.blend"), dict[str, Any]()
    SETUPS[setup](arms())
    bpy.ops.wm.save_as_mainfile(filepath=file)
    for name, options in [(own, given) for own in operators() for given in OPTIONS.get(own, ({},))]:
        if not before:
            bpy.ops.wm.open_mainfile(filepath=file)
            bpy.context.scene.frame_set(3)
            before = whole_file()
        is_done, error = False, ""
        try:
            is_done = getattr(bpy.ops.ik_addon, name)(**options) == {"FINISHED"}
        except RuntimeError as raised:
            error = str(raised)
        if "Traceback" in error:
            left.append((name, options, [error]))
        bpy.context.view_layer.update()
        after = whole_file()
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        if not is_done:
            refused.add(name)
            left += [(name, options, changed[:6])] if changed else []
        if changed:
            before = {}
    assert len(refused) > 5
    assert not left
