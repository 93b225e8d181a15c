"""What sampled F-curves alone say about a rig, compared with Blender stepping through the frames."""

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from numpy.random import Generator

from tests import rigs
from tests.conftest import Addon

FRAMES = [-7.0, 1.0, 2.0, 3.5, 10.25, 24.0, 31.0, 60.0]
MODES = ("QUATERNION", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "AXIS_ANGLE")
PATHS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}


@pytest.fixture
def curves(addon: Addon) -> Any:
    return addon.module("rig.read.fcurves")


def keys(rng: Generator, owner: Any, path: str, spread: float, center: float = 0.0) -> None:
    """Key a property on random frames, with random values, interpolation and extrapolation."""
    width = len(getattr(owner, path))
    chosen = rng.random(width) < 0.7
    held = [center + rng.normal(scale=spread) for _ in range(width)]
    setattr(owner, path, held)
    for frame in sorted(rng.choice(np.arange(-5, 45), size=4, replace=False).tolist()):
        setattr(owner, path, [center + rng.normal(scale=spread) for _ in range(width)])
        for index in np.flatnonzero(chosen).tolist():
            owner.keyframe_insert(path, index=index, frame=frame)
    setattr(owner, path, held)


def vary(rng: Generator, ob: bpy.types.Object) -> None:
    """Give the F-curves of an object every feature that F-curves can have."""
    for curve in rigs.fcurves(ob):
        curve.extrapolation = rng.choice(["CONSTANT", "LINEAR"])
        for point in curve.keyframe_points:
            point.interpolation = rng.choice(["BEZIER", "LINEAR", "CONSTANT", "ELASTIC", "SINE"])
        kind = str(rng.choice(["", "", "CYCLES", "NOISE", "LIMITS", "STEPPED", "GENERATOR"]))
        if kind and not curve.modifiers:
            modifier = curve.modifiers.new(kind)
            if kind == "NOISE":
                modifier.strength, modifier.scale = 0.4, 7.0
            elif kind == "GENERATOR":
                modifier.use_additive, modifier.coefficients[1] = True, 0.01
            modifier.mute = rng.random() < 0.2
        curve.mute = rng.random() < 0.15
        if curve.group is not None and rng.random() < 0.05:
            curve.group.mute = True


def place(rng: Generator, ob: bpy.types.Object) -> None:
    """Place and animate an object in every way that F-curves alone determine."""
    ob.rotation_mode = rng.choice(MODES)
    ob.location, ob.scale = rng.normal(size=3).tolist(), rng.uniform(0.5, 1.5, 3).tolist()
    ob.delta_location, ob.delta_scale = rng.normal(size=3).tolist(), rng.uniform(0.5, 1.5, 3).tolist()
    ob.delta_rotation_euler = rng.normal(size=3).tolist()
    ob.delta_rotation_quaternion = rng.normal(size=4).tolist()
    keys(rng, ob, "location", 1.0)
    if rng.random() < 0.7:
        keys(rng, ob, PATHS.get(ob.rotation_mode, "rotation_euler"), 0.7, 0.3)
    if rng.random() < 0.3:
        keys(rng, ob, "scale", 0.2, 1.0)
    if rng.random() < 0.3:
        keys(rng, ob, "delta_location", 0.5)
    vary(rng, ob)


def rig(rng: Generator) -> bpy.types.Object:
    """Return two chains on keyed bones, one attached to the other, with targets attached to all kinds of things."""
    ob = rigs.limb(rigs.straight(2), ["root", "hips"])
    rigs.add_bones(ob, [(0, 0, 2), (0, 0.2, 3), (0, 0, 4), (0.2, 0, 5)], ["spine1", "spine2", "chest"], parent="hips")
    rigs.add_bones(ob, [(0.2, 0, 5), (1, -0.2, 5), (2, 0, 5)], ["upper", "lower"], parent="chest")
    rigs.add_bones(ob, [(3, 0, 0), (3, 1, 0), (3, 1, 1)], ["other", "holder"])
    for bone in ob.pose.bones:
        bone.rotation_mode = rng.choice(MODES)
        if rng.random() < 0.7:
            keys(rng, bone, PATHS.get(bone.rotation_mode, "rotation_euler"), 0.4, 0.4)
        if rng.random() < 0.3:
            keys(rng, bone, "scale", 0.1, 1.0)
        if rng.random() < 0.3:
            keys(rng, bone, "location", 0.3)
    ob.data.bones["hips"].use_inherit_rotation = rng.random() < 0.5
    ob.data.bones["chest"].inherit_scale = rng.choice(["FULL", "NONE", "AVERAGE", "ALIGNED", "FIX_SHEAR"])
    parent, target, pole, held, second = (rigs.empty(name) for name in ("Parent", "Target", "Pole", "Held", "Second"))
    for other in (parent, target, pole, held, second, ob):
        place(rng, other)
    target.parent, target.matrix_parent_inverse = parent, parent.matrix_world.inverted()
    held.parent, held.parent_type, held.parent_bone = ob, "BONE", rng.choice(["holder", "hips"])
    pole.parent = second if rng.random() < 0.5 else None
    rigs.chain(ob, "spine2", target, 2, pole=pole)
    rigs.chain(ob, "lower", held, 2, use_rotation=bool(rng.random() < 0.5))
    for name in ("influence", "softness", "pole_angle"):
        if rng.random() < 0.5:
            values = {frame: rng.uniform(-0.2, 1.2) for frame in (0, 20, 40)}
            rigs.key(ob.pose.bones["lower"], f"ik_addon.{name}", values)
    vary(rng, ob)
    return ob


def sample(addon: Addon, plan: Any, numbers: Any) -> Any:
    """Return what the numbers of frames mean for a plan."""
    read = addon.module("rig.read.sample")
    return read.sample_of(plan, read.Frames(plan.numbers, numbers))


def stepped(addon: Addon, plan: Any, frames: list[float]) -> Any:
    """Return the numbers of frames as Blender shows them, one after the other."""
    read = addon.module("rig.read.sample").numbers_now
    found = rigs.on_frames(frames, lambda: read(plan.numbers, bpy.context.view_layer.depsgraph))
    return np.concatenate(list(found.values()))


def plan_of(addon: Addon, ob: bpy.types.Object) -> tuple[Any, Any]:
    """Return the plan of an armature, and the channels of its bones."""
    bpy.context.view_layer.update()
    plan = addon.module("rig.plan.plan").Plan.of(ob, bpy.context.view_layer.depsgraph)
    assert not plan.faults
    return plan, addon.module("core.channels").read(ob, plan.live)


@pytest.mark.parametrize("seed", range(40))
def test_sampled_curves_match_blenders_evaluation(curves: Any, addon: Addon, seed: int) -> None:
    ob = rig(np.random.default_rng(seed))
    plan, base = plan_of(addon, ob)
    found = sample(addon, plan, curves.numbers_at(plan.numbers, base, FRAMES))
    real = sample(addon, plan, stepped(addon, plan, FRAMES))
    for name in ("world", "channels", "basis", "poses"):
        np.testing.assert_allclose(getattr(found, name), getattr(real, name), atol=2e-5, rtol=2e-5, err_msg=name)
    for name, value in vars(found.goals).items():
        np.testing.assert_allclose(value, getattr(real.goals, name), atol=1e-4, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("extrapolation", ["HOLD", "HOLD_FORWARD"])
def test_curves_in_plain_strips_match_blenders_evaluation(curves: Any, addon: Addon, extrapolation: str) -> None:
    for seed in range(12):
        rigs.new_file()
        rng = np.random.default_rng(1000 + seed)
        ob = rig(rng)
        plan, base = plan_of(addon, ob)
        for owner in bpy.data.objects:
            if owner.animation_data is not None and owner.animation_data.action is not None:
                keep_whole_quaternions(owner)
                strip: Any = rigs.into_strip(owner, start=int(rng.integers(-4, 9)))
                strip.extrapolation = extrapolation
        frames = FRAMES if extrapolation == "HOLD" else FRAMES[4:]
        found, real = curves.numbers_at(plan.numbers, base, frames), stepped(addon, plan, frames)
        np.testing.assert_allclose(found, real, atol=1e-6, rtol=1e-6, err_msg=f"seed {seed}")


def test_a_child_of_constraint_carries_as_a_parent_does(curves: Any, addon: Addon) -> None:
    for seed in range(12):
        rigs.new_file()
        rng = np.random.default_rng(2000 + seed)
        ob = rig(rng)
        pole, target, second = (bpy.data.objects[name] for name in ("Pole", "Target", "Second"))
        carry(pole, second, "", inverse_matrix=second.matrix_world.inverted())
        carry(target, ob, "holder", inverse_matrix=Matrix.Rotation(seed, 4, "X"))
        plan, base = plan_of(addon, ob)
        found = sample(addon, plan, curves.numbers_at(plan.numbers, base, FRAMES))
        shown = sample(addon, plan, stepped(addon, plan, FRAMES))
        np.testing.assert_allclose(found.goals.target, shown.goals.target, atol=1e-4, rtol=1e-4, err_msg=f"seed {seed}")
        layer, places = bpy.context.view_layer, []
        for frame in FRAMES:
            bpy.context.scene.frame_set(int(frame), subframe=frame % 1.0)
            world = ob.evaluated_get(layer.depsgraph).matrix_world.inverted()
            goals = [own.evaluated_get(layer.depsgraph) for own in (target, pole)]
            places.append([world @ own.matrix_world.translation for own in goals])
        own = [chain.tip for chain in plan.chains].index("spine2")
        there = np.stack([found.goals.target[:, own], found.goals.pole[:, own]], axis=1)
        np.testing.assert_allclose(there, np.array(places), atol=1e-4, rtol=1e-4, err_msg=f"seed {seed}")


def carry(child: Any, ob: bpy.types.Object, bone: str, parent: Any = None, **settings: object) -> None:
    """Make an object a child of a bone by a constraint."""
    child.parent = parent
    rigs.constrain(child, "CHILD_OF", target=ob, subtarget=bone, **settings)


def keep_whole_quaternions(ob: bpy.types.Object) -> None:
    """Remove the F-curves of quaternions that are not keyed as a whole: a strip sets the rest to defaults."""
    curves = [curve for curve in rigs.fcurves(ob, "quaternion") if not curve.mute]
    paths = [curve.data_path for curve in curves]
    for curve in [c for c in curves if paths.count(c.data_path) < 4]:
        rigs.curve_owner(ob).fcurves.remove(curve)


def _strip(**settings: object) -> Callable[[Any, Any, Any], None]:
    """Return what plays the target's action from a strip with these settings."""

    def play(_ob: Any, target: Any, _other: Any) -> None:
        strip = rigs.into_strip(target)
        for name, value in settings.items():
            setattr(strip, name, value)

    return play


def _two_strips(_ob: Any, target: Any, _other: Any) -> None:
    action = rigs.into_strip(target).action
    target.animation_data.nla_tracks[0].strips.new("again", 60, action)


def _beside_action(_ob: Any, target: Any, _other: Any) -> None:
    rigs.into_strip(target)
    rigs.key(target, "location", {5: (0.5, 0.2, 1.0)})


def _timed(_ob: Any, target: Any, _other: Any) -> None:
    strip = rigs.into_strip(target)
    strip.use_animated_time = True
    strip.strip_time = 3.0


def _half_quaternion(ob: Any, _target: Any, _other: Any) -> None:
    ob.pose.bones["root"].keyframe_insert("rotation_quaternion", index=1, frame=3)
    rigs.into_strip(ob)


def _on_parent(_ob: Any, target: Any, other: Any) -> None:
    target.parent = other
    other.constraints.new("LIMIT_LOCATION")


def _on_vertex(_ob: Any, target: Any, _other: Any) -> None:
    target.parent, target.parent_type = rigs.mesh("Mesh", [(0, 0, 0)], []), "VERTEX"


def _on_path(_ob: Any, target: Any, _other: Any) -> None:
    target.parent = bpy.data.objects.new("Path", bpy.data.curves.new("Path", "CURVE"))
    bpy.context.scene.collection.objects.link(target.parent)


def _switched(ob: Any, _target: Any, _other: Any) -> None:
    constraint = ob.pose.bones["root"].constraints.new("COPY_LOCATION")
    rigs.key(constraint, "mute", {1: True, 9: False})
    constraint.mute = True


THINGS: dict[str, Callable[[Any, Any, Any], object]] = {
    "nothing": lambda _ob, _target, _other: None,
    "target's constraint": lambda _ob, target, other: rigs.constrain(target, "COPY_LOCATION", target=other),
    "target's driver": lambda _ob, target, _other: target.driver_add("scale", 0),
    "target's parent's constraint": _on_parent,
    "child of a vertex": _on_vertex,
    "child of a path": _on_path,
    "half a Child Of": lambda ob, target, _other: carry(target, ob, "root", influence=0.5),
    "Child Of without an axis": lambda ob, target, _other: carry(target, ob, "root", use_rotation_y=False),
    "Child Of beside a parent": lambda ob, target, other: carry(target, ob, "root", parent=other),
    "Child Of a group": lambda _ob, target, other: carry(target, other, "group"),
    "strip that is scaled": _strip(scale=2.0),
    "strip that is repeated": _strip(repeat=2.0),
    "strip that is reversed": _strip(use_reverse=True),
    "strip that is blended in": _strip(blend_in=5.0),
    "strip that is added": _strip(blend_type="ADD"),
    "strip that fades": _strip(use_animated_influence=True),
    "strip that is muted": _strip(mute=True),
    "strip that holds nothing": _strip(extrapolation="NOTHING"),
    "strip that has not begun": _strip(extrapolation="HOLD_FORWARD"),
    "strip with a time of its own": _timed,
    "two strips": _two_strips,
    "strip beside an action": _beside_action,
    "strip with a part of a quaternion": _half_quaternion,
    "armature's constraint": lambda ob, _target, other: setattr(ob.constraints.new("COPY_ROTATION"), "target", other),
    "parent bone's constraint": lambda ob, *_: ob.pose.bones["root"].constraints.new("LIMIT_ROTATION"),
    "constraint that is switched": _switched,
    "chain that moves a parent bone": lambda ob, _target, other: rigs.constrain(
        ob.pose.bones["hips"], "IK", target=other
    ),
    "parent bone's driver": lambda ob, *_: ob.pose.bones["root"].driver_add("location", 1),
    "chain's driver": lambda ob, *_: ob.driver_add('pose.bones["lower"].ik_addon.influence'),
    "bones at rest": lambda ob, *_: ob.data.keyframe_insert("pose_position", frame=3),
    "rotation mode": lambda ob, *_: ob.pose.bones["root"].keyframe_insert("rotation_mode", frame=3),
}


@pytest.mark.parametrize("thing", THINGS)
def test_motion_that_curves_do_not_determine_is_detected(curves: Any, addon: Addon, thing: str) -> None:
    ob = rigs.limb(rigs.straight(2), ["root", "hips"])
    rigs.add_bones(ob, [(0, 0, 2), (1, -0.2, 2), (2, 0, 2)], ["upper", "lower"], parent="hips")
    target = rigs.empty("Target")
    rigs.key(target, "location", {1: (0.5, 0.2, 1.0), 30: (0.2, 0.6, 1.3)})
    rigs.chain(ob, "lower", target, 2)
    THINGS[thing](ob, target, rigs.empty("Other"))
    plan, base = plan_of(addon, ob)
    if thing == "nothing":
        curves.numbers_at(plan.numbers, base, FRAMES)
    else:
        with pytest.raises(curves.NotDetermined):
            curves.numbers_at(plan.numbers, base, FRAMES)
