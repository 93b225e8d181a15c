"""What sampled F-curves alone say about a rig, compared with Blender stepping through the frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from numpy.random import Generator

from tests import rigs

if TYPE_CHECKING:
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


def all_curves(ob: bpy.types.Object) -> list[bpy.types.FCurve]:
    data = ob.animation_data
    if data is None or data.action is None:
        return []
    owner: Any = data.action
    if bpy.app.version >= (4, 4, 0):
        owner = owner.layers[0].strips[0].channelbag(data.action_slot)
    return list(owner.fcurves)


def vary(rng: Generator, ob: bpy.types.Object) -> None:
    """Give the F-curves of an object every feature that F-curves can have."""
    for curve in all_curves(ob):
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
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.straight(2), ["root", "hips"])
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
    settings = ob.pose.bones["lower"].ik_addon
    for name in ("influence", "softness", "pole_angle"):
        if rng.random() < 0.5:
            for frame in (0, 20, 40):
                setattr(settings, name, rng.uniform(-0.2, 1.2))
                ob.keyframe_insert(f'pose.bones["lower"].ik_addon.{name}', frame=frame)
    vary(rng, ob)
    return ob


def sample(addon: Addon, plan: Any, numbers: Any) -> Any:
    """Return what the numbers of frames mean for a plan."""
    return addon.module("rig.read.sample").sample_of(
        plan, addon.module("rig.read.frames").Frames(plan.numbers, numbers)
    )


def stepped(addon: Addon, plan: Any, frames: list[float]) -> Any:
    read, scene, found = addon.module("rig.read.sample"), bpy.context.scene, []
    for frame in frames:
        whole = math.floor(frame)
        scene.frame_set(whole, subframe=frame - whole)
        found.append(read.numbers_now(plan.numbers, bpy.context.view_layer.depsgraph))
    return sample(addon, plan, np.concatenate(found))


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
    real = stepped(addon, plan, FRAMES)
    for name in ("world", "channels", "basis", "poses"):
        np.testing.assert_allclose(getattr(found, name), getattr(real, name), atol=2e-5, rtol=2e-5, err_msg=name)
    for name, value in vars(found.goals).items():
        np.testing.assert_allclose(value, getattr(real.goals, name), atol=1e-4, rtol=1e-4, err_msg=name)


def wave(ob: bpy.types.Object) -> None:
    """Animate an object's location."""
    rigs.key(ob, "location", {1: (0.5, 0.2, 1.0), 30: (0.2, 0.6, 1.3)})


def more_than_curves(thing: str, ob: bpy.types.Object, target: bpy.types.Object) -> None:
    """Let something other than the rig's own F-curves affect its motion."""
    other = rigs.empty("Other")
    if thing == "target's constraint":
        target.constraints.new("COPY_LOCATION").target = other
    elif thing == "target's driver":
        target.driver_add("scale", 0)
    elif thing == "target's parent's constraint":
        target.parent = other
        other.constraints.new("LIMIT_LOCATION")
    elif thing == "child of a vertex":
        mesh = bpy.data.objects.new("Mesh", bpy.data.meshes.new("Mesh"))
        mesh.data.from_pydata([(0, 0, 0)], [], [])
        bpy.context.scene.collection.objects.link(mesh)
        target.parent, target.parent_type = mesh, "VERTEX"
    elif thing == "child of a path":
        path = bpy.data.objects.new("Path", bpy.data.curves.new("Path", "CURVE"))
        bpy.context.scene.collection.objects.link(path)
        target.parent = path
    elif thing == "strips":
        data = target.animation_data
        strip = data.nla_tracks.new().strips.new("strip", 1, data.action)
        strip.frame_start = 5
    elif thing == "armature's constraint":
        ob.constraints.new("COPY_ROTATION").target = other
    elif thing == "parent bone's constraint":
        ob.pose.bones["root"].constraints.new("LIMIT_ROTATION")
    elif thing == "constraint that is switched":
        constraint = ob.pose.bones["root"].constraints.new("COPY_LOCATION")
        constraint.mute = True
        for frame, muted in ((1, True), (9, False)):
            constraint.mute = muted
            constraint.keyframe_insert("mute", frame=frame)
        constraint.mute = True
    elif thing == "chain that moves a parent bone":
        ob.pose.bones["hips"].constraints.new("IK").target = other
    elif thing == "parent bone's driver":
        ob.pose.bones["root"].driver_add("location", 1)
    elif thing == "chain's driver":
        ob.driver_add('pose.bones["lower"].ik_addon.influence')
    elif thing == "bones at rest":
        ob.data.keyframe_insert("pose_position", frame=3)
    elif thing == "rotation mode":
        ob.pose.bones["root"].keyframe_insert("rotation_mode", frame=3)


THINGS = (
    *("target's constraint", "target's driver", "target's parent's constraint", "child of a vertex", "child of a path"),
    *("strips", "armature's constraint", "parent bone's constraint", "constraint that is switched"),
    *("chain that moves a parent bone", "parent bone's driver", "chain's driver", "bones at rest", "rotation mode"),
)


@pytest.mark.parametrize("thing", ["nothing", *THINGS])
def test_motion_that_curves_do_not_determine_is_detected(curves: Any, addon: Addon, thing: str) -> None:
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.straight(2), ["root", "hips"])
    rigs.add_bones(ob, [(0, 0, 2), (1, -0.2, 2), (2, 0, 2)], ["upper", "lower"], parent="hips")
    target = rigs.empty("Target")
    wave(target)
    rigs.chain(ob, "lower", target, 2)
    more_than_curves(thing, ob, target)
    plan, base = plan_of(addon, ob)
    if thing == "nothing":
        curves.numbers_at(plan.numbers, base, FRAMES)
    else:
        with pytest.raises(curves.NotDetermined):
            curves.numbers_at(plan.numbers, base, FRAMES)


def test_frame_handlers_of_others_make_motion_undetermined(curves: Any) -> None:
    def moves_something(*_arguments: object) -> None:
        pass

    scene = bpy.context.scene
    assert curves.decide_alone(scene)
    bpy.app.handlers.frame_change_pre.append(moves_something)
    try:
        assert not curves.decide_alone(scene)
    finally:
        bpy.app.handlers.frame_change_pre.remove(moves_something)
    scene.render.frame_map_new = 50
    assert not curves.decide_alone(scene)


def mute(data: Any, curves: list[bpy.types.FCurve], what: str) -> None:
    """Mute some of what animates an object: the action, or the track or strip beside it."""
    groups = {curve.group.name: curve.group for curve in curves}.values()
    if what == "group":
        for group in groups:
            group.mute = True
    elif what == "curves":
        for curve in curves:
            curve.mute = True
    elif what != "nothing":
        track = data.nla_tracks.new()
        strip = track.strips.new("strip", 1, data.action)
        if not what.endswith("beside the action"):
            data.action = None
        if "track muted" in what:
            track.mute = True
        elif what == "strip muted":
            strip.mute = True
        elif what == "NLA off":
            data.use_nla = False
        elif "solo" in what:
            other = data.nla_tracks.new()
            if "empty" not in what:
                other.strips.new("other", 1, bpy.data.actions.new("Other"))
            other.is_solo = True
        elif what == "group in a strip":
            for group in groups:
                group.mute = True


MUTES = (
    *("nothing", "group", "curves", "strip", "track muted", "track muted beside the action", "strip muted", "NLA off"),
    *("another solo", "another solo beside the action", "an empty solo", "an empty solo beside the action"),
    "group in a strip",
)


@pytest.mark.parametrize("what", MUTES)
def test_what_is_muted_counts_as_blender_evaluates_it(addon: Addon, curves: Any, what: str) -> None:
    ob, _target = rigs.arm()
    bone = ob.pose.bones["upper"]
    for frame, turn in ((1, 0.1), (20, 0.4)):
        bone.rotation_quaternion = (0.9, turn, 0.2, 0.1)
        bone.keyframe_insert("rotation_quaternion", frame=frame, group="upper")
    mute(ob.animation_data, all_curves(ob), what)
    bone.rotation_quaternion = (0.1, 0.9, 0.9, 0.9)
    before = bone.rotation_quaternion.copy()
    bpy.context.scene.frame_set(7)
    is_evaluated = bone.rotation_quaternion != before
    found = {curve.data_path for curve in addon.module("core.compat").animating(ob)}
    assert (bone.path_from_id("rotation_quaternion") in found) == is_evaluated
    try:
        determined = curves.at_frame(ob, np.array([0]), addon.module("core.channels").read(ob, np.array([0])), 7.0)
    except curves.NotDetermined:
        return
    np.testing.assert_array_equal(determined[0, 3:7], np.array(bone.rotation_quaternion, dtype=np.float32))
