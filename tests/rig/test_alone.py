"""Chains on one frame, solved one by one in plain floats: they get the pose that arrays give many frames."""

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

LEGS = 3


def limbs(kind: str, counts: tuple[int, ...], angle: float) -> tuple[bpy.types.Object, list[bpy.types.Object]]:
    """Return limbs with limits, of so many bones, on a turned body, the last with a pole, and their targets."""
    pole = rigs.empty("pole", (0.5, 3.0, 1.0))
    ob = rigs.limb([(0, 0, -1), (0, 0, 0)], ["body"])
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
        extra: dict[str, object] = {"pole": pole} if limb == LEGS - 1 else {"softness": 0.1 * limb}
        extra |= {"bend_side": (0.0, 1.0, 0.2)} if kind == "spine" else {}
        rigs.chain(ob, names[-1], targets[-1], bones, use_limits=True, **extra)
    ob.pose.bones["body"].rotation_quaternion = (0.98, 0.1, 0.15, 0.05)
    ob.pose.bones[f"{kind}0.0"].rotation_quaternion = (0.97, 0.2, 0.0, 0.1)
    rigs.change(ob.matrix_world, translation=(0.3, 0.1, -0.2))
    return ob, targets


def frames(addon: Addon, ob: bpy.types.Object, targets: list[bpy.types.Object], count: int) -> tuple[object, object]:
    """Return the plan of an armature, and a sample of frames with targets in and out of reach."""
    rng, numbers = np.random.default_rng(3), []
    read = addon.module("rig.read.sample")
    plan = addon.module("rig.plan.plan").Plan.of(ob, bpy.context.evaluated_depsgraph_get())
    for _ in range(count):
        for leg, target in enumerate(targets):
            away = rng.normal(size=3)
            away *= rng.uniform(0.1, 1.4) / np.linalg.norm(away)
            target.location = (leg + away[0], away[1], away[2])
        numbers.append(read.numbers_now(plan.numbers, bpy.context.evaluated_depsgraph_get()))
    return plan, read.sample_of(plan, read.Frames(plan.numbers, np.concatenate(numbers)))


def compare(
    addon: Addon, ob: bpy.types.Object, plan: object, sample: object, *, exact: bool = True, hurried: bool = False
) -> object:
    """Assert that frames get the same pose alone and together; return the outcomes.

    Args:
        addon: the extension.
        ob: the armature.
        plan: its plan.
        sample: the frames.
        exact: whether outcomes are the same as well, as where nothing is searched for.
        hurried: as while something is dragged; what is found then is not kept.
    """
    waves = addon.module("rig.write.waves")
    together, last = waves.pose(ob, plan, sample, hurried=hurried), waves.Last()
    for i in range(len(sample.world)):
        frame = sample.frames(slice(i, i + 1))
        alone = waves.pose(ob, plan, frame, last, hurried=hurried)
        np.testing.assert_allclose(alone.channels[0], together.channels[i], atol=1e-6)
        np.testing.assert_allclose(alone.poses[0], together.poses[i], atol=1e-6)
        for name in ("status", "at_limit", "iterations") if exact else ():
            assert np.array_equal(getattr(alone.outcomes, name)[0], getattr(together.outcomes, name)[i]), name
        if exact:
            np.testing.assert_allclose(alone.outcomes.error[0], together.outcomes.error[i], atol=1e-9)
        if hurried:
            whole = waves.pose(ob, plan, sample.frames(np.array([i, i])))
            np.testing.assert_allclose(waves.pose(ob, plan, frame, last).channels[0], whole.channels[0], atol=1e-6)
    assert any(wave is not None and wave.last for wave in last.alone.values())
    return together.outcomes


@pytest.mark.parametrize(
    ("kind", "bones", "count", "hurried"),
    [
        ("leg", (2,) * LEGS, 20, False),
        ("tail", (3, 4, 6), 10, False),
        ("tail", (3, 4, 6), 10, True),
        ("spine", (3, 4, 6), 10, False),
        ("spine", (3, 4, 6), 10, True),
    ],
)
def test_limited_chains_alone_match_many(
    addon: Addon, kind: str, bones: tuple[int, ...], count: int, hurried: bool
) -> None:
    ob, targets = limbs(kind, bones, 0.4 if kind == "leg" else 0.2)
    plan, sample = frames(addon, ob, targets, count)
    sample.goals.target[5, 1] = np.nan
    sample.goals.pole[6, LEGS - 1] = np.inf
    sample.goals.settings[7, 0, -1] = 0.4
    sample.goals.target[8, 0] = sample.goals.target[9, 0] = plan_tip(addon, ob, plan, sample)
    outcomes = compare(addon, ob, plan, sample, exact=kind == "leg", hurried=hurried)
    assert len(set(outcomes.status.ravel().tolist())) > 2  # reached, too far, limited


@pytest.mark.parametrize("seed", range(12))
def test_free_chains_alone_match_many(addon: Addon, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bones = int(rng.integers(2, 5))
    ob = rigs.armature()
    # Against its parent, a bone's rest matrix is only roughly a rotation.
    rigs.add_bones(ob, [(0, 0, 0), (0.3, 0.02, 1.0)], ["body"])
    way = -1.0 if seed % 2 else 1.0
    points = [(0.3 + 0.1 * x, y, 1.0 + way * z) for x, y, z in rigs.bent(bones, 1.0 / bones, 0.3)]
    rigs.add_bones(ob, points, [f"b{i}" for i in range(bones)], parent="body", connect=False)
    target, pole = rigs.empty("target"), rigs.empty("pole", (0.4, 2.0, 1.0))
    extra: dict[str, object] = {"out_of_reach": ["EXTEND", "STRETCH"][seed % 2]}
    extra |= {"pole": pole, "pole_angle": 0.3} if seed % 4 == 0 else {"softness": 0.1}
    extra |= {"bend_side": rng.normal(size=3).tolist()} if seed > 5 else {}
    rigs.chain(ob, f"b{bones - 1}", target, bones, **extra)
    for bone in ob.pose.bones:
        bone.rotation_mode = str(rng.choice(["QUATERNION", "XYZ", "ZYX"]))
        bone.ik_stretch = 0.1
    plan, samples = None, []
    for _ in range(12):
        for bone in ob.pose.bones:
            bone.rotation_quaternion = rng.normal(size=4) * 0.3 + (1.0, 0.0, 0.0, 0.0)
            bone.rotation_euler = rng.normal(size=3)
            bone.scale = [rng.uniform(0.7, 1.4)] * 3
        rigs.change(target, location=(rng.normal(size=3) * 0.8 + (0.3, 0.0, 1.0)).tolist())
        depsgraph = bpy.context.evaluated_depsgraph_get()
        plan = addon.module("rig.plan.plan").Plan.of(ob, depsgraph) if plan is None else plan
        samples.append(addon.module("rig.read.sample").numbers_now(plan.numbers, depsgraph))
    read = addon.module("rig.read.sample")
    sample = read.sample_of(plan, read.Frames(plan.numbers, np.concatenate(samples)))
    compare(addon, ob, plan, sample)


def plan_tip(addon: Addon, ob: bpy.types.Object, plan: object, sample: object) -> object:
    """Return the place of the first limb's tip in FK, offset by about a rounding error."""
    limbs = addon.module("rig.write.waves")._Poses(ob, plan, sample.frames(slice(0, 1))).limbs(plan.waves[0])
    return limbs.joints()[0, -1] * (1.0 + 1e-8)


def test_a_solution_gives_poses_after_its_armature_is_gone(addon: Addon) -> None:
    ob, targets = limbs("leg", (2,) * LEGS, 0.4)
    ob.pose.bones["leg0.1"].ik_addon.influence = 0.5
    # Blender itself has to convert the poses of such bones.
    rigs.change(ob.data.bones["leg0.1"], use_inherit_rotation=False)
    plan, sample = frames(addon, ob, targets, 3)
    pose = addon.module("rig.write.waves").pose
    posed, known = pose(ob, plan, sample), pose(ob, plan, sample).poses
    bpy.data.objects.remove(ob)
    np.testing.assert_allclose(posed.poses, known, atol=1e-6)
