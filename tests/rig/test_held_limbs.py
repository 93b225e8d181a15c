"""Chains whose FK pose does not change: solved one by one, they get the pose of the general code."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

LEGS = 3


def limbs(kind: str, counts: tuple[int, ...], angle: float) -> tuple[bpy.types.Object, list[bpy.types.Object]]:
    """Return limbs with limits, of so many bones, on a turned body, the last with a pole, and their targets."""
    pole = rigs.empty("pole", (0.5, 3.0, 1.0))
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, 0)], ["body"])
    targets = []
    for limb, bones in enumerate(counts):
        names = [f"{kind}{limb}.{i}" for i in range(bones)]
        points = [(x + limb, y, z) for x, y, z in rigs.bent(bones, 1.0 / bones, angle)]
        rigs.add_bones(ob, points, names, parent="body", connect=False)
        targets.append(rigs.empty(f"target{limb}", (limb + 0.2, 0.3, 0.6)))
        for i, name in enumerate(names):
            bone = ob.pose.bones[name]
            bone.use_ik_limit_x = bone.use_ik_limit_y = bone.use_ik_limit_z = True
            bone.ik_min_x, bone.ik_max_x = (0.0, 2.2) if kind == "leg" and i else (-0.9, 1.2)
            bone.ik_min_y, bone.ik_max_y, bone.ik_min_z, bone.ik_max_z = -0.3, 0.4, -0.6, 0.7
        extra = {"pole": pole} if limb == LEGS - 1 else {"softness": 0.1 * limb}
        rigs.chain(ob, names[-1], targets[-1], bones, use_limits=True, **extra)
    ob.pose.bones["body"].rotation_quaternion = (0.98, 0.1, 0.15, 0.05)
    ob.pose.bones[f"{kind}0.0"].rotation_quaternion = (0.97, 0.2, 0.0, 0.1)
    ob.matrix_world.translation = (0.3, 0.1, -0.2)
    bpy.context.view_layer.update()
    return ob, targets


def legs() -> tuple[bpy.types.Object, list[bpy.types.Object]]:
    return limbs("leg", (2,) * LEGS, 0.4)


def frames(addon: Addon, ob: bpy.types.Object, targets: list[bpy.types.Object], count: int) -> tuple[object, object]:
    """Return the plan of an armature, and a sample of frames with targets in and out of reach."""
    rng, numbers = np.random.default_rng(3), []
    read, kinematics = addon.module("rig.read.sample"), addon.module("rig.read.frames")
    plan = addon.module("rig.plan.plan").Plan.of(ob, bpy.context.evaluated_depsgraph_get())
    for _ in range(count):
        for leg, target in enumerate(targets):
            away = rng.normal(size=3)
            away *= rng.uniform(0.1, 1.4) / np.linalg.norm(away)
            target.location = (leg + away[0], away[1], away[2])
        numbers.append(read.numbers_now(plan.numbers, bpy.context.evaluated_depsgraph_get()))
    return plan, read.sample_of(plan, kinematics.Frames(plan.numbers, np.concatenate(numbers)))


def test_held_limbs_match_the_general_solver(addon: Addon) -> None:
    ob, targets = legs()
    plan, sample = frames(addon, ob, targets, 40)
    sample.goals.target[5, 1] = np.nan
    sample.goals.pole[6, LEGS - 1] = np.inf
    sample.goals.influence[7, 0] = 0.4
    sample.goals.target[8, 0] = sample.goals.target[9, 0] = plan_tip(addon, ob, plan, sample)
    held = addon.module("rig.write.held_armature").HeldArmature(ob, plan, sample.frames(slice(0, 1)))
    assert held.works
    assert held.fits(sample)
    short, long = held.solve(ob, sample), addon.module("rig.write.waves").pose(ob, plan, sample)
    np.testing.assert_allclose(short.channels, long.channels, atol=1e-6)
    np.testing.assert_allclose(short.poses, long.poses, atol=1e-6)
    for name in ("status", "at_limit", "iterations"):
        assert np.array_equal(getattr(short.outcomes, name), getattr(long.outcomes, name)), name
    np.testing.assert_allclose(short.outcomes.error, long.outcomes.error, atol=1e-9)
    assert len(set(short.outcomes.status[:, 0].tolist())) > 2  # reached, too far, limited
    alone = [held.solve(ob, sample.frames(slice(i, i + 1))).channels for i in range(len(sample.world))]
    np.testing.assert_allclose(np.concatenate(alone), long.channels, atol=1e-6)


def plan_tip(addon: Addon, ob: bpy.types.Object, plan: object, sample: object) -> object:
    """Return the place of the first limb's tip in FK, offset by about a rounding error."""
    limbs = addon.module("rig.write.waves").fk_limbs(ob, plan, sample.frames(slice(0, 1)), plan.waves[0])
    return limbs.joints()[0, -1] * (1.0 + 1e-8)


OUTCOMES = ("status", "at_limit", "error")


@pytest.mark.parametrize("hurried", [False, True])
def test_held_chains_match_the_general_solver(addon: Addon, hurried: bool) -> None:
    ob, targets = limbs("tail", (3, 4, 6), 0.2)
    plan, sample = frames(addon, ob, targets, 14)
    sample.goals.target[5, 1] = np.nan
    sample.goals.target[8, 0] = sample.goals.target[9, 0] = plan_tip(addon, ob, plan, sample)
    held = addon.module("rig.write.held_armature").HeldArmature(ob, plan, sample.frames(slice(0, 1)))
    assert held.works
    pose = addon.module("rig.write.waves").pose
    together = pose(ob, plan, sample, hurried=hurried)
    for i in range(len(sample.world)):
        frame = sample.frames(slice(i, i + 1))
        alone = held.solve(ob, frame, hurried=hurried)
        np.testing.assert_allclose(alone.channels, together.channels[i : i + 1], atol=1e-6)
        for name in OUTCOMES:
            np.testing.assert_allclose(getattr(alone.outcomes, name)[0], getattr(together.outcomes, name)[i], atol=1e-9)
        if hurried:  # what was found in a hurry is not kept
            np.testing.assert_allclose(held.solve(ob, frame).channels, pose(ob, plan, frame).channels, atol=1e-6)
    assert len(set(together.outcomes.status.ravel().tolist())) > 2  # reached, too far, limited


def test_only_the_limb_whose_target_moves_is_solved_again(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    ob, targets = legs()
    rigs.go_live(ob)
    targets[0].location.x += 0.01
    bpy.context.view_layer.update()
    held, solved = addon.module("rig.write.held_limbs"), []
    real = held.solved_limb

    def counted(*given: object) -> object:
        solved.append(given[2])
        return real(*given)

    monkeypatch.setattr(held, "solved_limb", counted)
    poses = []
    for step in range(4):
        targets[1].location.y = 0.3 + 0.05 * step
        bpy.context.view_layer.update()
        poses.append(rigs.pose(ob))
    assert len(solved) == 3  # the first of these moves changes nothing
    monkeypatch.setattr(addon.module("live.rig").Rig, "_held", lambda *_: None)
    for step in range(4):
        targets[1].location.y = 0.3 + 0.05 * step
        bpy.context.scene.frame_set(1)
        np.testing.assert_allclose(rigs.pose(ob), poses[step], atol=1e-6)


@pytest.mark.parametrize("road", ["held", "waves"])
def test_a_solution_gives_poses_after_its_armature_is_gone(road: str, addon: Addon) -> None:
    ob, targets = legs()
    if road == "held":
        rigs.add_bones(ob, [(0.0, 0.0, 1.0), (0.0, 0.3, 1.0)], ["foot"], parent="leg0.1", connect=False)
        chain = ob.pose.bones["leg0.1"].ik_addon
        chain.end_bone, chain.use_end_rotation = "foot", True
    else:
        ob.pose.bones["leg0.1"].ik_addon.influence = 0.5
    # Blender itself has to convert the poses of such bones.
    ob.data.bones["foot" if road == "held" else "leg0.1"].use_inherit_rotation = False
    bpy.context.view_layer.update()
    plan, sample = frames(addon, ob, targets, 3)
    if road == "held":
        held = addon.module("rig.write.held_armature").HeldArmature(ob, plan, sample.frames(slice(0, 1)))
        assert held.works
        posed, known = held.solve(ob, sample), held.solve(ob, sample).poses
    else:
        pose = addon.module("rig.write.waves").pose
        posed, known = pose(ob, plan, sample), pose(ob, plan, sample).poses
    bpy.data.objects.remove(ob)
    np.testing.assert_allclose(posed.poses, known, atol=1e-6)
