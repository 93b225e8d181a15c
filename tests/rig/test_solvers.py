"""What the FABRIK solver is for, in the pose that Blender shows."""

from __future__ import annotations

from tests import rigs


def test_fabrik_is_led_by_its_tip() -> None:
    """Move the target by a fiftieth of the chain's length, and look at the pose shown."""
    turned = {}
    for solver in ("FABRIK", "EVEN_BEND"):
        ob = rigs.armature(solver)
        rigs.add_bones(ob, [(0.0, 0.0, 0.1 * i) for i in range(11)], [f"{solver}{i}" for i in range(10)])
        rigs.chain(ob, f"{solver}9", rigs.empty(f"At {solver}", (0.02, 0.0, 0.98)), 10, solver=solver)
        rigs.go_live(ob)
        bones = rigs.evaluated(ob).pose.bones
        angles = [bones[f"{solver}{i}"].matrix_basis.to_quaternion().angle for i in range(10)]
        turned[solver] = sum(angles[-3:]) / sum(angles)
    assert turned["FABRIK"] > 0.9
    assert turned["EVEN_BEND"] < 0.25
