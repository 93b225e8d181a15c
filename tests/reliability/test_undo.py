"""One undo step reverts one click."""

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs, rigs_named
from tests.reliability.states import activate, keyed, snapshot


def solved_arm() -> None:
    """Set up an arm with a chain from Add Chain, posed by hand, then solved; and one without a chain."""
    ob = rigs.armature()
    for side, x in (("L", 1.0), ("R", -1.0)):
        points = [(x, 0, 0), (1.2 * x, -0.2, 1), (x, 0, 2)]
        rigs.add_bones(ob, points, [f"upper.{side}", f"lower.{side}"])
    ob.pose.bones["upper.L"].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
    activate(ob, "lower.L")
    bpy.ops.ik_addon.chain_add()
    rigs.change(ob.pose.bones["lower.L"].ik_addon.target, location=(1.4, 0.6, 1.1))
    bpy.ops.ik_addon.solve()


def unsolved_arm() -> None:
    """Set up the same arm before it is solved."""
    solved_arm()
    bpy.ops.ik_addon.restore_pose()


def bare_arm() -> None:
    """Set up the same arm without a chain."""
    solved_arm()
    bpy.ops.ik_addon.chain_remove()


def live_arm() -> None:
    """Set up the same arm, solved live."""
    unsolved_arm()
    rigs.go_live(bpy.data.objects["Rig"])


def constrained() -> None:
    """Set up an arm with a constraint without a pole, whose chain would find another pose."""
    ob = rigs.limb([(0, 0, 0), (0.2, -0.2, 1), (0, 0, 2)], ["upper", "lower"])
    target = rigs.empty("Target", (0.9, -0.3, 0.8))
    rigs.constrain(ob.pose.bones["lower"], "IK", target=target, chain_count=2)
    bpy.context.view_layer.update()


def converted() -> None:
    """Set up the same arm after conversion."""
    constrained()
    bpy.ops.ik_addon.convert_constraints()
    bpy.context.view_layer.update()


def figure() -> None:
    """Set up a human without chains."""
    rigs_named.build(rigs_named.RIGS["Mixamo"])


RANGE = {"frame_range": "CUSTOM", "frame_start": 1, "frame_end": 3}


def state() -> tuple[dict[str, Any], list[bool], dict[str, Any], list[str]]:
    """Return everything that an operator could change, the muted constraints, the keys, and the names of the data."""
    bpy.context.view_layer.update()
    muted = [c.mute for bone in bpy.data.objects["Rig"].pose.bones for c in bone.constraints]
    data = (*bpy.data.actions, *bpy.data.armatures, *bpy.data.meshes)
    return snapshot(), muted, {ob.name: keyed(ob) for ob in bpy.data.objects}, sorted(own.name for own in data)


def assert_same(now: Any, wanted: Any) -> None:
    own, others = now[0].pop("Rig"), wanted[0].pop("Rig")
    assert now == wanted
    assert own[1:] == others[1:]
    channels = [np.frombuffer(found[0], dtype=np.float32) for found in (own, others)]
    assert np.abs(channels[0] - channels[1]).max() < 1e-6


def assert_undone_and_redone(change: Callable[[], object]) -> None:
    """Assert that one undo reverts a change that pushes an undo step, and one redo makes it again."""
    start = state()
    bpy.ops.ed.undo_push(message="before")
    change()
    end = state()
    assert end != start
    bpy.ops.ed.undo()
    assert_same(state(), start)
    bpy.ops.ed.redo()
    assert_same(state(), end)


@pytest.mark.parametrize(
    ("before", "operator", "options"),
    [
        (bare_arm, "chain_add", {}),
        (solved_arm, "chain_remove", {}),
        (live_arm, "chain_remove", {}),
        (unsolved_arm, "solve", {}),
        (solved_arm, "restore_pose", {}),
        (live_arm, "restore_pose", {}),
        (live_arm, "snap_target", {}),
        (live_arm, "snap_target", RANGE),
        (live_arm, "apply_pose", RANGE),
        (live_arm, "mirror_chain", {}),
        (constrained, "convert_constraints", {}),
        (converted, "restore_constraints", {}),
        (bare_arm, "chain_add", {"controls": "BONES"}),
        (figure, "character_setup", {}),
        (live_arm, "switch_ik_fk", {}),
        (live_arm, "switch_space", {"space": "WORLD"}),
        (live_arm, "bake", {**RANGE, "smooth": True, "reduce_keys": True}),
        (live_arm, "bake_skeleton", RANGE),
        (bare_arm, "pose_body", {"bone": "lower.L", "offset": (-0.1, -0.3, -0.2)}),
        (bare_arm, "pin", {}),
    ],
)
@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_operators_are_one_undo_step_and_keep_the_mode(
    before: Callable[[], None], operator: str, options: dict[str, Any], mode: str
) -> None:
    before()
    bpy.ops.object.mode_set(mode=mode)
    assert_undone_and_redone(lambda: getattr(bpy.ops.ik_addon, operator)("EXEC_DEFAULT", True, **options))
    made_active = operator == "bake_skeleton"  # what it makes is, to be exported
    assert bpy.context.object.mode == ("OBJECT" if made_active else mode)


def test_live_is_one_undo_step() -> None:
    def turn_on() -> None:
        bpy.data.objects["Rig"].ik_addon.live = True
        bpy.ops.ed.undo_push(message="Live")  # as the button does

    unsolved_arm()
    assert_undone_and_redone(turn_on)


def test_undo_of_a_moved_target_moves_the_live_limb_back() -> None:
    def move() -> None:
        rigs.shift(bpy.data.objects["IK Target lower.L"], z=-0.4)
        bpy.ops.ed.undo_push(message="Move")

    live_arm()
    assert_undone_and_redone(move)
