"""Convert Blender's IK constraints to chains, and restore them exactly."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from bpy.types import Context, KinematicConstraint, Object, PoseBone, ViewLayer

from ..core import channels, compat
from ..core.goals import Goal
from ..core.names import names_by_tip
from ..core.report import Remark, Report, percent, rounded
from ..core.settings import chain_of, object_of
from ..core.skeleton import Skeleton, inverse, matrix_array, moved, orthonormal
from ..core.translation.sentences import UserError, count, marked, say
from ..core.untyped import Struct
from ..live import reports
from ..rig.plan.chain import posed_bones
from ..rig.plan.limits import is_free, knee_hinge
from ..solve import pole_angle
from ..solve.problem import Floats
from . import bend_side, conversion, new_chain, removal
from .conversion import CONVERTED, FK_BEFORE, Source, path_of
from .current_pose import Limb, largest_turn, read_poses

KEPT = marked("The current pose is now the FK pose of the chain on '{tip}'")
TURNED = math.radians(0.1)
"""A bone that turned by more than this is reported."""


@dataclass(frozen=True)
class Conversion(Report):
    """The result of converting the constraints of an armature."""

    tips: tuple[str, ...]
    """The tip bones of the new chains."""
    distance: float
    """The largest distance that a tip moved, in chain lengths."""
    angle: float
    """The largest angle that a bone turned by, in radians."""
    notes: tuple[str, ...]
    """Sentences about what else was changed."""
    warnings: tuple[str, ...]
    """Sentences about what was not converted or transferred, and what moved."""

    def sentences(self) -> Iterator[str]:
        """Yield what was done, what moved and what could not be transferred."""
        yield count(len(self.tips), "Converted 1 IK constraint", "Converted {count} IK constraints")
        yield say("Live turned on")
        moved = "Tips moved by up to {distance} of the chain's length, bones turned by up to {angle}°"
        yield say(moved, distance=percent(self.distance), angle=rounded(math.degrees(self.angle)))
        yield from map(Remark, self.warnings)
        yield from self.notes


@dataclass(frozen=True)
class _Move:
    """How the pose of one chain changed."""

    distance: float
    """How far its tip moved, in chain lengths."""
    angle: float
    """The largest angle that a bone turned by, in radians; also the hand or foot."""
    nearer: bool
    """Whether its tip is closer to its target, which the constraint had missed."""

    def message(self, tip: str) -> str:
        """The move as a sentence."""
        moved = "The tip of '{tip}' moved by {distance} of the chain's length, and its bones turned by up to {angle}°"
        if self.nearer:
            moved = (
                "The tip of '{tip}' moved by {distance} of the chain's length, closer to its target, "
                "and its bones turned by up to {angle}°"
            )
        return say(moved, tip=tip, distance=percent(self.distance), angle=rounded(math.degrees(self.angle)))


def convert(context: Context, ob: Object) -> Conversion:
    """Convert every enabled or driven IK constraint of an armature object to a chain, mute it, and turn Live on.

    A constraint that can't be converted stays as it is. If a chain would find a different pose than the constraint, the
    current pose becomes the FK pose of its bones, unless they are animated.

    Args:
        context: gives the view layer.
        ob: the armature object.

    Raises:
        UserError: no constraint can be converted; nothing was changed.
    """
    _check_armature(ob)
    context.view_layer.update()
    depsgraph = context.view_layer.depsgraph
    new_chain.check_world(ob, ob.evaluated_get(depsgraph).matrix_world)
    was_live = object_of(ob).live
    warnings: list[str] = []
    chosen = _chosen(ob, warnings)
    posed = _Posed(ob, context.view_layer, Skeleton.of(ob), read_poses(ob, depsgraph))
    switched_on = posed.when_on([source for source in chosen if source.constraint.mute])
    made: dict[str, str] = {}  # from the tip of the new chain to the bone with the constraint
    for source in chosen:
        owner = source.owner
        side = bend_side.shown_by(ob, source.bones, switched_on)
        found = bend_side.find(ob, source.bones, None, depsgraph)
        side = np.zeros(3) if found.both_ways else found.side if side is None else side
        angle = posed.pole_angle(source, switched_on, side)
        owner[CONVERTED] = {
            "constraint": source.constraint.name,
            "twin": "" if source.twin is None else source.twin.name,
            "was_driven": conversion.mute_driver(source.constraint) is not None,
            "was_live": was_live,
        }
        warnings += conversion.make_chain(source, angle)
        chain_of(source.tip).bend_side = side
        owner[CONVERTED].update(conversion.take_end_rotation(source, depsgraph))
        made[source.tip.name] = owner.name
    while made:
        object_of(ob).live = True
        context.view_layer.update()
        failed = {tip: report for tip in made if (report := reports.get(ob, tip)) is None or report.failed}
        if not failed:
            break
        for tip, report in failed.items():
            name = ob.pose.bones[made[tip]][CONVERTED]["constraint"]
            why = say("the chain could not be solved") if report is None else report.message
            warnings.append(_not_converted(name, made[tip], why))
        _take_back(context, ob, [ob.pose.bones[made.pop(tip)] for tip in failed])
    if not made:
        raise UserError(". ".join(warnings))
    kept = posed.keep(list(made))
    moves, names = posed.moves(made), names_by_tip(ob)
    seen = (tip for tip, move in moves.items() if move.distance > reports.NEAR or move.angle > TURNED)
    warnings += [moves[tip].message(names.get(tip, tip)) for tip in seen]
    return Conversion(
        tips=tuple(made),
        distance=max(move.distance for move in moves.values()),
        angle=max(move.angle for move in moves.values()),
        notes=tuple(say(KEPT, tip=names.get(tip, tip)) for tip in kept),
        warnings=tuple(warnings),
    )


def restore(context: Context, ob: Object) -> list[str]:
    """Remove the chains that `convert` made and unmute their constraints; return the names of their bones.

    Raises:
        UserError: a constraint is gone; nothing was changed.
    """
    owners = conversion.converted_bones(ob)
    for owner in owners:
        name = owner[CONVERTED]["constraint"]
        if not isinstance(owner.constraints.get(name), KinematicConstraint):
            gone = (
                "Bone '{owner}' no longer has an IK constraint '{name}'. Rename it back, or delete the bone's "
                "custom property '{mark}'"
            )
            raise UserError(gone, owner=owner.name, name=name, mark=CONVERTED)
    _take_back(context, ob, owners)
    return [owner.name for owner in owners]


# ---- checks


def _chosen(ob: Object, warnings: list[str]) -> list[Source]:
    """Return what can be converted; add a sentence to `warnings` for each constraint that can't."""
    found: list[Source] = []
    for source in conversion.sources(ob):
        reason = conversion.obstacle(source, [other.tip.name for other in found])
        if not reason and conversion.is_converted(source.owner):
            reason = say("'{owner}' already has a converted constraint", owner=source.owner.name)
        if reason:
            warnings.append(_not_converted(source.constraint.name, source.owner.name, reason))
        else:
            found.append(source)
    return found


def _not_converted(constraint: str, owner: str, why: str) -> str:
    return say("'{constraint}' on '{owner}' was not converted: {why}", constraint=constraint, owner=owner, why=why)


def _check_armature(ob: Object) -> None:
    if ob.override_library is not None:
        raise UserError(
            "'{object}' is a library override, which can't store the conversion. Convert its constraints in the file "
            "it comes from",
            object=ob.name,
        )
    if ob.pose.ik_solver == "ITASC":
        raise UserError(
            "'{object}' uses the iTaSC solver, whose constraints work differently. "
            "Set its IK Solver to Standard in the Armature properties first",
            object=ob.name,
        )
    if ob.data.pose_position == "REST":
        raise UserError("'{object}' is in Rest Position. Switch it to Pose Position", object=ob.name)


# ---- the pose


@dataclass(frozen=True)
class _Posed:
    """The pose of an armature before its constraints are converted."""

    ob: Object
    view_layer: ViewLayer
    skeleton: Skeleton
    before: Floats
    """(m, 4, 4)"""

    def when_on(self, switched: Sequence[Source]) -> Floats:
        """Return the pose (m, 4, 4) with constraints on that drivers have switched off."""
        if not switched:
            return self.before
        for source in switched:
            for constraint in source.constraints:
                conversion.silence(constraint)
                constraint.mute = constraint == source.twin
        self.view_layer.update()
        found = read_poses(self.ob, self.view_layer.depsgraph)
        for source in switched:
            for constraint in source.constraints:
                conversion.silence(constraint, to=False)
        compat.tag(self.ob)
        self.view_layer.update()
        return found

    def pole_angle(self, source: Source, poses: Floats, side: Floats) -> float:
        """Return the pole angle of a chain that bends as a constraint does in a pose (m, 4, 4), to a side (3,).

        Blender turns the root bone's X axis towards the pole, and the bend turns with it, so the angle between bend and
        pole is the same wherever the target goes. Blender never stretches a limb so far that its bend can't be seen.
        """
        made: Struct = source.constraint
        if made.pole_target is None:
            return 0.0
        limb = Limb.of(self.skeleton, [self.skeleton.names.index(bone.name) for bone in source.bones], poses)
        goals = Goal(made.target, made.subtarget), Goal(made.pole_target, made.pole_subtarget)
        target, pole = (self._place_of(goal)[None] for goal in goals)
        joints, frames, own = limb.joints[None], limb.frames[None], limb.frames[0].dot(side)[None]
        # With limits on the root bone, `make_chain` turns Limits off.
        hinge = knee_hinge(source.bones) if is_free(source.bones[0]) else None
        return float(pole_angle(joints, frames, target, pole, own, hinge=hinge)[0])

    def _place_of(self, goal: Goal) -> Floats:
        """Return where (3,) a target or pole is in the space of the armature object."""
        depsgraph = self.view_layer.depsgraph
        world = matrix_array(self.ob.evaluated_get(depsgraph).matrix_world)
        return moved(inverse(world), np.array(goal.world(depsgraph).translation))

    def moves(self, tips: Iterable[str]) -> dict[str, _Move]:
        """Return how the poses of chains have changed, by their tips."""
        poses, found = (self.before, read_poses(self.ob, self.view_layer.depsgraph)), {}
        for tip in [self.ob.pose.bones[name] for name in tips]:
            old, new = (Limb.on(tip, self.skeleton, own) for own in poses)
            target = self._place_of(Goal(chain_of(tip).target, chain_of(tip).target_bone))
            was, now = old.joints[-1], new.joints[-1]
            missed, misses, way = (float(np.linalg.norm(a - b)) for a, b in ((was, target), (now, target), (was, now)))
            posed = [self.skeleton.names.index(bone.name) for bone in posed_bones(tip)]  # an end bone, too
            turned = largest_turn(*(orthonormal(own[posed, :3, :3]) for own in poses))
            found[tip.name] = _Move(way / max(old.length, 1e-30), turned, misses < missed)
        return found

    def keep(self, tips: list[str]) -> list[str]:
        """Make it the FK pose of chains that would otherwise leave it; return their tips.

        The FK pose stays as it is where it is visible (influence below 1) or comes from keys.
        """
        ob = self.ob
        animated = [curve.data_path for curve in conversion.curves_of(ob)]
        in_nla = bool(compat.evaluated_tracks(ob.animation_data))

        def can_be_kept(tip: PoseBone) -> bool:
            paths = (path_of(tip, "influence"), *(f"{bone.path_from_id()}.rotation" for bone in posed_bones(tip)))
            return not in_nla and chain_of(tip).influence == 1.0 and not any(a.startswith(paths) for a in animated)

        moves = self.moves(tips)
        kept = [tip for tip in tips if moves[tip].angle > 0.2 * TURNED and can_be_kept(ob.pose.bones[tip])]
        if not kept:
            return []
        object_of(ob).live = False
        own = [bone for tip in kept for bone in posed_bones(ob.pose.bones[tip])]
        bones, basis, poses = np.array(sorted({ob.pose.bones.find(bone.name) for bone in own})), [], self.before
        rows = channels.read(ob, bones)
        for bone, row in zip(bones.tolist(), rows, strict=True):
            pose_bone, above = ob.pose.bones[bone], int(self.skeleton.parents[bone])
            pose_bone[FK_BEFORE] = {"mode": pose_bone.rotation_mode, "channels": row.tolist()}
            parent = None if above < 0 else poses[None, above]
            basis.append(self.skeleton.to_basis(ob, bone, poses[None, bone], parent))
        modes = np.array([ob.pose.bones[bone].rotation_mode for bone in bones.tolist()])
        rotations = channels.basis_rotation(np.concatenate(basis), rows)
        channels.write(ob, bones, channels.with_rotation(rows, rotations, modes))
        object_of(ob).live = True
        self.view_layer.update()
        return kept


def _take_back(context: Context, ob: Object, owners: list[PoseBone]) -> None:
    """Undo the conversion of the constraints of these bones."""
    live_before = object_of(ob).live and all(owner[CONVERTED]["was_live"] for owner in owners)
    given_back = [conversion.replaced(owner) for owner in owners]
    tips = [source.tip for source in given_back]
    records = [owner[CONVERTED].to_dict() for owner in owners]
    for tip in tips:
        if chain_of(tip).is_chain:
            chain_of(tip).enabled = False
    context.view_layer.update()  # unlike removing a solved chain, this also restores FK poses that are not keyed
    for owner, tip in zip(owners, tips, strict=True):
        conversion.drop_animation(ob, tip)
        if chain_of(tip).is_chain:
            removal.remove_chains(context, [tip], remove_goals=False)
        conversion.give_end_rotation_back(ob, owner[CONVERTED])
        del owner[CONVERTED]
    if not live_before:
        object_of(ob).live = False
    for source, record in zip(given_back, records, strict=True):
        for constraint in source.constraints:
            constraint.mute = constraint == source.twin  # until its driver, if it has one, is evaluated
            if record.get("was_driven", False):
                conversion.silence(constraint, to=False)
    if not conversion.converted_bones(ob):
        put_back = [index for index, bone in enumerate(ob.pose.bones) if conversion.put_fk_back(ob, bone)]
        removal.evaluate_animation(ob, put_back, context.view_layer)
    context.view_layer.update()
