"""Between FK and IK: snap targets and poles to the pose, and make the solved pose the FK pose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ..bake import BakeReport, bake
from ..data.settings import chain_of, object_of
from ..live import handlers, reports
from ..pose import channels, keyframes
from ..pose.channels import FIELDS, Row
from ..pose.continuity import continuous
from ..pose.skeleton import Skeleton
from ..rig.plan.chain import ChainError, chain_bones, check
from . import new_chain
from .autokey import auto_key, goes_back
from .goals import MovableGoal, channels_of, key_goals, pole_place, target_place
from .present import Limb, read_poses, seen_from, world_of

PLACED = 1e-4
"""A goal farther from its place than this, in chain lengths, is held by something else."""


class SnapError(Exception):
    """Nothing was snapped or applied; the message says why and what to do."""


def snap_goals(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int] | None = None,
    *,
    shown: bool = False,
) -> list[str]:
    """Move targets and poles to match a pose, so that solving it changes nothing.

    Args:
        context: for the scene and the view layer.
        ob: the armature object.
        tips: of the chains.
        frames: ascending, on which targets and poles are keyed; None: the current one, keyed if auto keying is on.
        shown: take the pose as it is shown, and not the FK pose.

    Returns:
        Sentences about goals that are not where they should be.

    Raises:
        SnapError, KeysError: it cannot be done; nothing was changed.
    """
    for tip in tips:
        if reason := new_chain.why_unusable(tip):
            raise SnapError(reason)
    goals = {tip.name: _goals(tip) for tip in tips}
    _check(goals)
    scene, view_layer = context.scene, context.view_layer
    try:
        new_chain.check_world(ob, ob.evaluated_get(view_layer.depsgraph).matrix_world)
    except ChainError as error:
        raise SnapError(str(error)) from None
    everything = [goal for found in goals.values() for goal in found]
    if frames is not None:
        for goal in everything:
            keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
    held: set[str] = set()
    moved: dict[str, float] = {}
    with ExitStack() as undo:
        for goal in everything:
            undo.callback(goal.set_row, goal.row())
        with _in_fk(context, ob, [] if shown else tips):
            if frames is None:
                held |= _place(ob, view_layer, goals, shown)
                moved = {} if shown else _moved_by_solving(context, ob, tips)
            else:
                rows = _placed_on(scene, view_layer, ob, goals, shown, frames, held)
        if frames is not None:
            key_goals(everything, rows, frames)
        undo.pop_all()
    if frames is not None:
        scene.frame_set(scene.frame_current, subframe=scene.frame_subframe)
    view_layer.update()
    remarks = [f"'{name}' is held by a constraint, driver or lock, so it didn't reach its place" for name in held]
    remarks += [
        f"Solving moves the chain on '{tip}' by {reports.percent(distance)} of its length anyway, "
        "because of softness, limits or another chain"
        for tip, distance in moved.items()
        if distance > PLACED and not held
    ]
    if frames is None:
        for goal in everything:
            auto_key(context, goal.holder, goal.fields)
        lost = [goal for goal in everything if goes_back(context, goal.holder, goal.fields)]
        remarks += [f"'{goal.name}' is animated and goes back on the next frame change. Key it" for goal in lost]
    return sorted(set(remarks))


def apply_pose(context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]) -> list[str]:
    """Make the solved pose of the current frame the FK pose of chains; return sentences about what will not stay.

    Raises:
        SnapError: a chain cannot be solved; nothing was changed.
    """
    names = [tip.name for tip in tips]
    bones = sorted({ob.pose.bones.find(bone.name) for tip in tips for bone in chain_bones(tip)})
    indices = np.array(bones)
    for tip in tips:
        try:
            check(ob, tip, context.view_layer)
        except ChainError as error:
            raise SnapError(f"The chain on '{tip.name}' can't be solved. {error}") from None
    if not object_of(ob).live:
        handlers.solve_now(ob, context.evaluated_depsgraph_get(), names)
        context.view_layer.update()
    for name in names:
        report = reports.get(ob, name)
        if report is None or report.failed:
            raise SnapError(f"The chain on '{name}' was not solved. {report.message if report else ''}".strip())
    solved = channels.read(ob, indices)
    with _in_fk(context, ob, tips):
        changed = channels.read(ob, indices) != solved
        channels.write(ob, indices, solved)
        context.view_layer.update()
    context.view_layer.update()
    remarks = []
    for bone, different in zip((ob.pose.bones[bone] for bone in bones), changed, strict=True):
        fields = [field for field, columns in FIELDS.items() if different[columns].any()]
        auto_key(context, bone, fields)
        if goes_back(context, bone, fields):
            remarks.append(
                f"'{bone.name}' is animated and goes back on the next frame change. Key it, or apply a range of frames"
            )
    return remarks


def apply_poses(
    context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone], frames: Sequence[int]
) -> BakeReport:
    """Make the solved poses of frames the keyed FK pose of chains, which stay enabled.

    Raises:
        BakeError, KeysError: it cannot be done; nothing was changed.
    """
    report = bake(context, ob, [tip.name for tip in tips], frames)
    for tip in tips:
        chain_of(tip).enabled = True
    context.view_layer.update()
    return report


# ---- goals


def _goals(tip: bpy.types.PoseBone) -> list[MovableGoal]:
    """The target of a chain, and its pole where it has one."""
    chain = chain_of(tip)
    if chain.target is None:
        raise SnapError(f"The chain on '{tip.name}' has no target. Pick one")
    found = [MovableGoal(chain.target, chain.target_bone, chain.use_rotation)]
    return found if chain.pole is None else [*found, MovableGoal(chain.pole, chain.pole_bone, False)]


def _check(goals: dict[str, list[MovableGoal]]) -> None:
    for tip, found in goals.items():
        for goal in found:
            if not goal.ob.is_editable:
                raise SnapError(f"'{goal.ob.name}' is linked from another file and can't be moved")
            if goal.bone and goal.ob.type == "ARMATURE":
                if goal.bone not in goal.ob.pose.bones:
                    raise SnapError(f"'{goal.ob.name}' has no bone '{goal.bone}' for the chain on '{tip}' to follow")
                bone = goal.ob.pose.bones[goal.bone].bone
                if bone.use_connect and bone.parent is not None:
                    raise SnapError(f"Bone '{goal.bone}' is connected to its parent and can't be moved")


@contextmanager
def _in_fk(context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]) -> Iterator[None]:
    """Disable chains for a while and show their FK pose, while others are solved as usual."""
    enabled = {tip.name: chain_of(tip).enabled for tip in tips}
    if tips and not object_of(ob).live:
        new_chain.restore_pose(ob, context.view_layer, list(tips))
    try:
        for name in enabled:
            chain_of(ob.pose.bones[name]).enabled = False
        context.view_layer.update()
        yield
    finally:
        for name, on in enabled.items():
            chain_of(ob.pose.bones[name]).enabled = on


def _place(
    ob: bpy.types.Object, view_layer: bpy.types.ViewLayer, goals: dict[str, list[MovableGoal]], shown: bool
) -> set[str]:
    """Place the goals of chains for the pose of the current frame; return the names of those that could not get there.

    The pole stays where a solved limb is stretched out: its bend is not seen, and comes from where the pole is.
    """
    skeleton = Skeleton.of(ob)
    depsgraph = view_layer.depsgraph
    poses = read_poses(ob, depsgraph)
    world = ob.evaluated_get(depsgraph).matrix_world.copy()
    held = set()
    for name, found in goals.items():
        tip = ob.pose.bones[name]
        bones = [ob.pose.bones.find(bone.name) for bone in chain_bones(tip)]
        limb = Limb.of(skeleton, bones, poses)
        places = [target_place(limb, world)]
        if len(found) > 1 and not (shown and chain_of(tip).enabled and limb.is_straight):
            pole = world @ Vector(pole_place(ob, limb, tip, found[1], depsgraph).tolist())
            if np.isfinite(pole[:]).all():  # a chain that is scaled to nothing bends to no side
                places.append(pole)
        turn = (world @ Matrix(poses[bones[-1]])).to_quaternion()
        for goal, place in zip(found, places, strict=False):
            current = world_of(goal.ob, goal.bone, depsgraph)
            turned = turn if goal.turns else current.to_quaternion()
            goal.place(Matrix.LocRotScale(place, turned, current.to_scale()))
            view_layer.update()  # the pole may be attached to the target
            gap = seen_from(ob, world_of(goal.ob, goal.bone, depsgraph).translation, depsgraph)
            if np.linalg.norm(gap - seen_from(ob, place, depsgraph)) > PLACED * limb.length:
                held.add(goal.name)
    return held


def _moved_by_solving(
    context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]
) -> dict[str, float]:
    """The largest distance, in chain lengths, that a joint of disabled chains moves when they are solved."""
    view_layer, skeleton = context.view_layer, Skeleton.of(ob)
    before = read_poses(ob, view_layer.depsgraph)
    everything = np.arange(len(ob.pose.bones))
    rows = channels.read(ob, everything)
    is_live = object_of(ob).live
    if is_live:
        for tip in tips:
            chain_of(tip).enabled = True
    else:
        handlers.solve_now(ob, view_layer.depsgraph, [tip.name for tip in tips])
    view_layer.update()
    after = read_poses(ob, view_layer.depsgraph)
    if is_live:
        for tip in tips:
            chain_of(tip).enabled = False
    else:
        new_chain.restore_pose(ob, view_layer, list(tips))
        channels.write(ob, everything, rows)  # what is animated may have been posed without a key
    view_layer.update()
    moved = {}
    for tip in tips:
        bones = [ob.pose.bones.find(bone.name) for bone in chain_bones(tip)]
        old, new = (Limb.of(skeleton, bones, poses) for poses in (before, after))
        moved[tip.name] = float(np.linalg.norm(old.joints - new.joints, axis=1).max()) / max(old.length, 1e-30)
    return moved


def _placed_on(
    scene: bpy.types.Scene,
    view_layer: bpy.types.ViewLayer,
    ob: bpy.types.Object,
    goals: dict[str, list[MovableGoal]],
    shown: bool,
    frames: Sequence[int],
    held: set[str],
) -> Row:
    """Channels (F, g, 17) of all goals on frames; `held` takes the names of those that cannot be placed."""
    frame, subframe = scene.frame_current, scene.frame_subframe
    everything = [goal for found in goals.values() for goal in found]
    rows = []
    try:
        for number in frames:
            scene.frame_set(number)
            held |= _place(ob, view_layer, goals, shown)
            rows.append([goal.row() for goal in everything])
    finally:
        scene.frame_set(frame, subframe=subframe)
    return continuous(np.array(rows), [goal.holder.rotation_mode for goal in everything])
