"""Convert Blender's IK constraints to chains one by one, and restore them exactly.

Two constraints on one bone that differ only in their pole, with drivers to switch it, count as one. What was converted
is recorded on the bones themselves, so that it survives saving, renaming and undo.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import Context, Depsgraph, FCurve, KinematicConstraint, Object, PoseBone, ViewLayer

from ..core import channels, compat, key_curve
from ..core.constraints import active_constraints
from ..core.goals import Goal
from ..core.names import chain_name, names_by_tip
from ..core.report import Remark, Report, percent, rounded
from ..core.settings import chain_of, object_of
from ..core.skeleton import Skeleton, inverse, matrix_array, moved, orthonormal
from ..core.translation.sentences import UserError, count, marked, say
from ..core.untyped import Json, Struct
from ..live import reports
from ..rig.plan.chain import chain_bones, holding_constraints, posed_bones
from ..rig.plan.limits import is_free, knee_hinge
from ..solve import pole_angle
from ..solve.problem import Floats
from . import bend_side, new_chain, removal
from .current_pose import Limb, largest_turn, read_poses

SHARED = ("target", "subtarget", "chain_count", "use_tail", "use_rotation", "use_stretch", "weight", "influence")
"""Settings that are equal in two constraints between which drivers switch."""
KEPT = marked("The current pose is now the FK pose of the chain on '{tip}'")
TURNED = math.radians(0.1)
"""A bone that turned by more than this is reported."""


class Source(NamedTuple):
    """The IK constraints that become one chain."""

    owner: PoseBone
    """The bone with the constraint."""
    constraint: KinematicConstraint
    twin: KinematicConstraint | None = None
    """The same constraint without a pole, which drivers enable in its place."""

    @property
    def ob(self) -> Object:
        """The armature object."""
        return self.owner.id_data

    @property
    def tip(self) -> Struct:
        """The last bone that the constraint moves; None if there is none, which `obstacle` refuses."""
        return self.owner if self.constraint.use_tail else self.owner.parent

    @property
    def bones(self) -> list[PoseBone]:
        """The bones that the constraint moves, root first."""
        return [self.tip, *self.tip.parent_recursive][: self.constraint.chain_count or None][::-1]

    @property
    def constraints(self) -> list[KinematicConstraint]:
        """The constraint, and its twin if there is one."""
        return [self.constraint] if self.twin is None else [self.constraint, self.twin]


def sources(ob: Object) -> Iterator[Source]:
    """Yield the IK constraints of an armature object that are enabled, or that a driver may enable."""
    for owner in ob.pose.bones:
        own = [made for made in owner.constraints if isinstance(made, KinematicConstraint)]
        own = [made for made in own if not made.mute or mute_driver(made) is not None]
        pairs = [(made, _twin_of(made, own)) for made in own]
        twins = [twin for _made, twin in pairs if twin is not None]
        yield from (Source(owner, made, twin) for made, twin in pairs if made not in twins)


def _twin_of(constraint: KinematicConstraint, own: Iterable[KinematicConstraint]) -> KinematicConstraint | None:
    """Return the constraint on the same bone that drivers enable in place of one with a pole; None if there is none."""
    if constraint.pole_target is None or (inputs := _inputs(constraint)) is None:
        return None
    for twin in own:
        is_alike = all(getattr(twin, name) == getattr(constraint, name) for name in SHARED)
        if is_alike and twin.pole_target is None and _inputs(twin) == inputs:
            return twin
    return None


def _inputs(constraint: KinematicConstraint) -> list[tuple[object, str]] | None:
    """Return what the driver that mutes a constraint reads; None if there is no driver."""
    curve = mute_driver(constraint)
    if curve is None:
        return None
    return [(target.id, target.data_path) for variable in curve.driver.variables for target in variable.targets]


# ---- drivers


def mute_driver(constraint: KinematicConstraint, is_silent: bool = False) -> FCurve | None:
    """Return the driver that mutes a constraint: the active driver, or with `is_silent` a muted one; else None."""
    path, drivers = f"{constraint.path_from_id()}.mute", compat.drivers_of(constraint.id_data)
    return next((c for c in drivers if c.data_path == path and c.mute == is_silent), None)


def silence(constraint: KinematicConstraint, to: bool = True) -> None:
    """Mute the driver that mutes a constraint, so that it no longer controls the constraint, or unmute it again."""
    if (driver := mute_driver(constraint, is_silent=not to)) is not None:
        driver.mute = to


def _line_of(curve: FCurve) -> bpy.types.FModifierGenerator | None:
    """Return the only modifier of a driver's curve if it is a straight line, as Blender adds it; None otherwise."""
    if len(curve.modifiers) != 1:
        return None
    line = curve.modifiers[0]
    if not isinstance(line, bpy.types.FModifierGenerator) or line.mode != "POLYNOMIAL" or line.poly_order != 1:
        return None
    return line if not (line.mute or line.use_additive or line.use_restricted_range) else None


def invert(curve: FCurve) -> None:
    """Invert a driver's curve, so that it is 1 where it was 0, and 0 where it was 1."""
    line = _line_of(curve)
    if line is not None:
        line.coefficients = (1.0 - line.coefficients[0], -line.coefficients[1])
    elif len(curve.keyframe_points):
        for key in curve.keyframe_points:
            for point in (key.co, key.handle_left, key.handle_right):
                point[1] = 1.0 - point[1]
        curve.update()
    else:
        made: Struct = curve.modifiers.new("GENERATOR")
        made.mode, made.poly_order, made.coefficients = "POLYNOMIAL", 1, (1.0, -1.0)


# ---- records

CONVERTED = "ik_addon_converted"
"""Custom property of a bone whose IK constraint was converted: what is needed to restore it."""
FK_BEFORE = "ik_addon_fk_before"
"""Custom property of a bone whose solved pose became its FK pose: the channels it had before."""


def converted_bones(ob: Object) -> list[PoseBone]:
    """Return the bones with an IK constraint that was converted."""
    return [bone for bone in ob.pose.bones if is_converted(bone)]


def is_converted(bone: PoseBone) -> bool:
    """Return whether a bone has a record of a constraint that was converted, in the form in which it is written."""
    found = bone.get(CONVERTED)
    try:
        return isinstance(found["constraint"], str) and isinstance(found["was_live"], bool | int)
    except (TypeError, KeyError):
        return False


def replaced(owner: PoseBone) -> Source:
    """Return the converted constraints of a bone."""
    record, made = owner[CONVERTED], owner.constraints
    twin = made.get(record.get("twin", ""))
    return Source(owner, made[record["constraint"]], twin if isinstance(twin, KinematicConstraint) else None)


def put_fk_back(ob: Object, bone: PoseBone) -> bool:
    """Restore the channels that a bone had before a solved pose became its FK pose; return whether one did."""
    held = bone.get(FK_BEFORE)
    try:
        row = np.array(held["channels"], dtype=np.float32)
        is_pose = held["mode"] in channels.MODES and row.shape == channels.REST.shape
    except (TypeError, KeyError, ValueError):
        return False
    if not (is_pose and np.isfinite(row).all()):
        return False
    if held["mode"] != bone.rotation_mode:
        row = channels.convert_rotation(row, held["mode"], bone.rotation_mode)
    channels.write(ob, np.array([ob.pose.bones.find(bone.name)]), row[None])
    del bone[FK_BEFORE]
    return True


# ---- the chain of a constraint

BESIDE = 1e-5
"""An end bone belongs to a tip if it starts no farther from the tip's tail than this, in lengths of the tip."""


def obstacle(source: Source, made: Iterable[str]) -> str:
    """Return why a constraint can't become a chain; empty if it can."""
    ob, tip, constraint = source.ob, source.tip, source.constraint
    if tip is None:
        return say("it moves no bone, because Use Tail is off and its bone has no parent")
    if not constraint.is_valid or constraint.target is None:
        return say("it has no valid target or pole, so it does nothing")
    if constraint.target.type != "ARMATURE" and constraint.subtarget:
        return say("its target is a vertex group")
    if not constraint.use_location or constraint.weight == 0.0:
        return say("it does not pull its tip to the target's position")
    if tip.name in made:
        return say("'{tip}' is the tip of another constraint", tip=tip.name)
    if chain_of(tip).is_chain:
        return say("'{tip}' already has a chain", tip=tip.name)
    path = constraint.path_from_id()
    driver = mute_driver(constraint)
    paths = {f"{path}.mute", f"{path}.enabled"}
    if any(curve.data_path in paths and curve != driver and not curve.mute for curve in curves_of(ob)):
        return say("its Enabled setting is animated or driven. Animate its influence instead")
    if driver is not None and source.twin is None:
        is_animated = any(curve.data_path == f"{path}.influence" for curve in curves_of(ob))
        is_bent = len(driver.modifiers) > 0 and _line_of(driver) is None
        if is_animated or constraint.influence != 1.0 or is_bent:
            return say(
                "its Enabled setting is driven nonlinearly, or its influence is also animated, driven or not 1. Drive "
                "its influence instead"
            )
    return ""


def make_chain(source: Source, angle: float) -> list[str]:
    """Replace a constraint with a chain on its tip and mute the constraint; return what could not be transferred."""
    tip, constraint = source.tip, source.constraint
    chain = chain_of(tip)
    chain.chain_length = constraint.chain_count
    chain.target, chain.target_bone = constraint.target, constraint.subtarget
    chain.pole, chain.pole_bone = constraint.pole_target, constraint.pole_subtarget
    chain.pole_angle = angle
    chain.use_rotation = constraint.use_rotation
    chain.weight = constraint.weight
    chain.influence = constraint.influence
    chain.iterations = max(constraint.iterations, 1)
    chain.enabled = True
    if constraint.use_stretch and any(bone.ik_stretch > 0.0 for bone in chain_bones(tip)):
        chain.out_of_reach = "STRETCH"
    warnings = list(_transfer_animation(source))
    bones = chain_bones(tip)
    if constraint.pole_target is not None and len(bones) == 2 and not is_free(bones[0]):
        chain.use_limits = False
        ignored = (
            "Blender ignores the limits of '{bone}' because of the pole, "
            "so the chain on '{tip}' has Limits off to keep its pose"
        )
        warnings.append(say(ignored, bone=bones[0].name, tip=chain_name(tip)))
    for replaced in source.constraints:
        silence(replaced)
        replaced.mute = True
    chain.is_chain = True
    return warnings


def take_end_rotation(source: Source, depsgraph: Depsgraph) -> dict[str, str]:
    """Let a new chain turn the hand or foot that a Copy Rotation constraint with the same target turned; mute that.

    Returns what `give_end_rotation_back` needs; empty if there is no such constraint, or nothing to fit it to.
    """
    tip = source.tip
    chain = chain_of(tip)
    found = None if chain.use_rotation else _end_rotation(source)
    if found is None:
        return {}
    end, copy = found
    chain.end_bone = end.name
    if not new_chain.fit_end(tip, depsgraph):
        chain.end_bone = ""
        return {}
    chain.use_end_rotation = copy.mute = True
    return {"end": chain.end_bone, "rotation": copy.name}


def give_end_rotation_back(ob: Object, converted: Json) -> None:
    """Unmute the constraint that `take_end_rotation` muted."""
    end: PoseBone | None = ob.pose.bones.get(str(converted.get("end", "")))
    copy = None if end is None else end.constraints.get(str(converted.get("rotation", "")))
    if copy is not None:
        copy.mute = False


def _end_rotation(source: Source) -> tuple[PoseBone, bpy.types.CopyRotationConstraint] | None:
    """Return the hand or foot below the tip that copies the rotation of a constraint's target, and its constraint."""
    tip = source.tip.bone
    for end in source.tip.children_recursive:
        # The constraint brings the tail of the tip to its target, and a chain the head of its end bone.
        is_there = (end.bone.head_local - tip.tail_local).length <= BESIDE * tip.length
        if not is_there or holding_constraints(active_constraints(source.ob), source.tip, end):
            continue
        active = [c for c in end.constraints if not c.mute and c not in source.constraints]
        if len(active) == 1 and _is_end_rotation(active[0], source.constraint):
            # A chain blends both with its Influence, and its end bone would turn less than the constraint turned it.
            paths = [constraint.path_from_id() for constraint in source.constraints]
            switches = {f"{path}.{name}" for path in paths for name in ("influence", "mute", "enabled")}
            is_switched = any(curve.data_path in switches for curve in curves_of(source.ob))
            return None if is_switched or source.constraint.influence < 1.0 else (end, active[0])
    return None


def _is_end_rotation(copy: bpy.types.Constraint, constraint: KinematicConstraint) -> bool:
    """Return whether a constraint copies the whole rotation of an IK constraint's target, on every frame."""
    if not isinstance(copy, bpy.types.CopyRotationConstraint):
        return False
    ob = copy.id_data
    same = copy.target == constraint.target and copy.subtarget == constraint.subtarget
    whole = copy.influence == 1.0 and copy.mix_mode == "REPLACE" and copy.use_x and copy.use_y and copy.use_z
    inverted = copy.invert_x or copy.invert_y or copy.invert_z
    spaces = {copy.owner_space, copy.target_space}
    in_one_space = spaces == {"WORLD"} or (spaces == {"POSE"} and copy.target == ob)
    path = f"{copy.path_from_id()}."
    is_animated = any(curve.data_path.startswith(path) for curve in curves_of(ob))
    return bool(same and whole and not inverted and in_one_space and not is_animated)


# ---- animation


def _transfer_animation(source: Source) -> Iterator[str]:
    """Transfer animation of the constraint's influence and pole to the chain; yield what could not be transferred."""
    ob, tip, constraint = source.ob, source.tip, source.constraint
    where = say("'{constraint}' on '{owner}'", constraint=constraint.name, owner=source.owner.name)
    path, influence = constraint.path_from_id(), path_of(tip, "influence")
    for curve in curves_of(ob):
        name = curve.data_path.rpartition(".")[2]
        if not curve.data_path.startswith(f"{path}.") or name == "mute":
            continue
        if name != "influence":
            left_out = "The animation of '{name}' of {where} was not transferred. The chain keeps its value"
            yield say(left_out, name=name, where=where)
        elif curve.driver is not None:
            _copy_driver(ob, curve, influence)
        elif not curve.id_data.is_editable:
            yield say("The keys on the influence of {where} are linked and were not transferred", where=where)
        else:
            copy = compat.find_curve(ob, influence) or compat.curves_of(ob).new(influence)
            key_curve.write_keys(copy, key_curve.read_keys(curve))
            copy.extrapolation = curve.extrapolation
            if len(curve.modifiers):
                yield say("The F-curve modifiers on the influence of {where} were not transferred", where=where)
    driver = mute_driver(source.twin or constraint)
    if driver is not None and source.twin is not None:
        _copy_driver(ob, driver, path_of(tip, "use_pole"))  # the pole is on while the twin is off
    elif driver is not None:
        invert(_copy_driver(ob, driver, influence))
    if compat.evaluated_tracks(ob.animation_data):
        yield say("Keys in NLA tracks on the influence of {where}, if any, were not transferred", where=where)


def path_of(tip: PoseBone, setting: str) -> str:
    """Return the data path of a setting of the chain on a tip bone."""
    return f"{tip.path_from_id()}.ik_addon.{setting}"


def _copy_driver(ob: Object, curve: FCurve, path: str) -> FCurve:
    copy = ob.animation_data.drivers.from_existing(src_driver=curve)
    copy.data_path = path
    return copy


def drop_animation(ob: Object, tip: PoseBone) -> None:
    """Remove what `_transfer_animation` made."""
    paths = {path_of(tip, "influence"), path_of(tip, "use_pole")}
    for curve in [curve for curve in curves_of(ob) if curve.data_path in paths]:
        if curve.driver is not None:
            ob.animation_data.drivers.remove(curve)
        else:
            compat.curves_of(ob).remove(curve)


def curves_of(ob: Object) -> list[FCurve]:
    """Return the F-curves and drivers of an object."""
    return [*compat.curves_of(ob), *compat.drivers_of(ob)]


# ---- converting and restoring


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


class _Move(NamedTuple):
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
            "was_driven": mute_driver(source.constraint) is not None,
            "was_live": was_live,
        }
        warnings += make_chain(source, angle)
        chain_of(source.tip).bend_side = side
        owner[CONVERTED].update(take_end_rotation(source, depsgraph))
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
    owners = converted_bones(ob)
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
    for source in sources(ob):
        reason = obstacle(source, [other.tip.name for other in found])
        if not reason and is_converted(source.owner):
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


class _Posed(NamedTuple):
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
                silence(constraint)
                constraint.mute = constraint == source.twin
        self.view_layer.update()
        found = read_poses(self.ob, self.view_layer.depsgraph)
        for source in switched:
            for constraint in source.constraints:
                silence(constraint, to=False)
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
        animated = [curve.data_path for curve in curves_of(ob)]
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
    given_back = [replaced(owner) for owner in owners]
    tips = [source.tip for source in given_back]
    records = [owner[CONVERTED].to_dict() for owner in owners]
    for tip in tips:
        if chain_of(tip).is_chain:
            chain_of(tip).enabled = False
    context.view_layer.update()  # unlike removing a solved chain, this also restores FK poses that are not keyed
    for owner, tip in zip(owners, tips, strict=True):
        drop_animation(ob, tip)
        if chain_of(tip).is_chain:
            removal.remove_chains(context, [tip], remove_goals=False)
        give_end_rotation_back(ob, owner[CONVERTED])
        del owner[CONVERTED]
    if not live_before:
        object_of(ob).live = False
    for source, record in zip(given_back, records, strict=True):
        for constraint in source.constraints:
            constraint.mute = constraint == source.twin  # until its driver, if it has one, is evaluated
            if record.get("was_driven", False):
                silence(constraint, to=False)
    if not converted_bones(ob):
        put_back = [index for index, bone in enumerate(ob.pose.bones) if put_fk_back(ob, bone)]
        removal.evaluate_animation(ob, put_back, context.view_layer)
    context.view_layer.update()
