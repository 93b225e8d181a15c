"""Chains for a whole figure: arms, legs, spine and head, as Add Chain would make them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from bpy.types import Context, Object, PoseBone

from ..anatomy import body
from ..anatomy.body import LIMBS, Member, Region, parent_bone_of
from ..anatomy.figure import Figure
from ..anatomy.limbs import part_of
from ..anatomy.parts import Part
from ..anatomy.sides import up_of
from ..core import compat
from ..core.constraints import steered_bones
from ..core.report import Remark, Report
from ..core.settings import chain_of, object_of
from ..core.translation.sentences import UserError, count, marked, quoted, say
from ..live.reports import NEAR
from ..rig.plan.chain import chain_bones, end_of, tips
from ..rig.plan.limits import SETTINGS, is_free
from ..solve.problem import Floats
from . import make_controls, profile
from .bend_side import extension
from .convert import sources
from .current_pose import read_poses
from .make_controls import Controls
from .new_chain import add_chain, are_animated
from .profile import exceeded, fit

PRESETS = {Region.ARM: "Human_Elbow.py", Region.LEG: "Human_Knee.py", Region.SPINE: "Human_Spine.py"}
"""The shipped preset files for the chains of a human."""
SOFTNESS, ROUNDING = 0.01, 1e-6
"""The largest softness that legs get, and how far it begins beyond all known poses, so that rounding moves none."""
AROUND_HIPS, AROUND_ROOT = 1.0, 1.5
"""Diameters of the circles around the hips and the root bone, in lengths of the leg down to its last bone."""
AROUND_SHOULDER = 0.8
"""Diameter of the circle around a shoulder, in its own length."""

ANIMATED = marked(
    "These parts are animated. Press Targets to Pose (Range) to transfer their animation to the targets: {parts}"
)
WITH_CONSTRAINTS = marked("These parts have IK constraints. Convert IK Constraints turns them into chains: {parts}")
"""Remarks for which the panels have buttons."""
WIDENED = marked("The animation widened the human limits of these joints: {names}")
REMOVED = marked("The animation goes far beyond human limits, so these joints got none: {names}")

_last: dict[int, Outcome] = {}
"""The last outcomes, by `session_uid` of the armature object."""


@dataclass(frozen=True)
class Wishes:
    """What to make."""

    regions: frozenset[Region]
    with_poles: bool
    with_presets: bool
    """Apply limits of human joints, if the figure is human."""
    live: bool
    controls: Controls = Controls.BONES
    """Where the armature can't get bones of its own, empties are made."""
    arms_with_chest: bool = False
    """The targets of arms go along with the chest; otherwise they stay in place, as those of legs do."""


@dataclass(frozen=True)
class Outcome(Report):
    """What was done for a figure."""

    made: tuple[str, ...]
    """The parts that got a chain, in words."""
    tips: tuple[str, ...]
    """Tip bones of the new chains and of existing ones."""
    remarks: tuple[str, ...]
    """Sentences about parts that were not found, left out, or treated differently."""

    def sentences(self) -> Iterator[str]:
        """Yield what was made, and the remarks."""
        done = count(len(self.made), "Set up 1 chain", "Set up {count} chains")
        made = say("{done}: {parts}", done=done, parts=", ".join(self.made))
        yield made if self.made else say("No chain was added")
        yield from map(Remark, self.remarks)


def set_up(context: Context, ob: Object, wishes: Wishes) -> Outcome:
    """Put chains on the limbs and the trunk of an armature object and keep its pose.

    Bones that already have a chain or one of Blender's IK constraints are left alone.
    """
    context.view_layer.update()
    before = dict(zip(ob.pose.bones.keys(), read_poses(ob, context.evaluated_depsgraph_get()), strict=True))
    figure = Figure.of(ob, steered_bones(ob))
    found = body.find_members(figure)
    wanted = [member for member in found if member.region in wishes.regions]
    with_chain = _those_with(figure, wanted, [chain_bones(tip) for tip in tips(ob)])
    with_constraint = _those_with(figure, wanted, _constrained(ob))
    left = [part for part in wanted if part not in with_chain and part not in with_constraint]
    remarks: list[str] = []
    if left and wishes.controls is Controls.BONES and not make_controls.can_be_made(context, ob):
        remarks.append(say("The controls are empties: this armature is linked, overridden, hidden or shares its data"))
    made = _add_chains(context, ob, {part: figure.names[part.row[-1]] for part in left}, wishes, remarks)
    was_live = object_of(ob).live
    if made:
        _dress_trunk(ob, figure, wanted)
        object_of(ob).live = True
        context.view_layer.update()
        if wishes.with_presets and body.is_human(figure, found):
            remarks += _apply_presets(context, made, before)
        for part, tip in made.items():
            if part.region is Region.LEG:
                spare = 1.0 - ROUNDING - extension(tip, context.view_layer.depsgraph)
                chain_of(tip).softness = max(0.0, min(spare, SOFTNESS))
        context.view_layer.update()
        bent = [part for part, tip in made.items() if _moved(context, tip, before) > NEAR]
        remarks += _about(bent, marked("These parts were bent the wrong way, so their pose changed: {parts}"))
        if not (wishes.live or was_live):
            object_of(ob).live = False
            context.view_layer.update()
    # A static target overrides the animation of a limb, or of its hand or foot.
    ends = {part: [*chain_bones(tip), *filter(None, [end_of(tip)])] for part, tip in made.items()}
    remarks += _about([part for part, bones in ends.items() if are_animated(*bones)], ANIMATED)
    remarks += _about(with_chain, marked("These parts already have chains: {parts}"))
    remarks += _left_out(ob, figure, found, with_constraint, wishes.regions)
    outcome = Outcome(tuple(say(part.words) for part in made), tuple(tip.name for tip in tips(ob)), tuple(remarks))
    _last[ob.session_uid] = outcome
    return outcome


def _add_chains(
    context: Context, ob: Object, parts: Mapping[Member, str], wishes: Wishes, remarks: list[str]
) -> dict[Member, PoseBone]:
    """Put chains on parts, given the names of their tip bones; return the tips, and add a remark for each failure."""
    made = {}
    for part, name in parts.items():
        with_pole = wishes.with_poles and part.region in LIMBS
        # The chest goes with the hips, and the head with the chest.
        with_body = part.region not in LIMBS or (part.region is Region.ARM and wishes.arms_with_chest)
        try:
            add_chain(context, ob.pose.bones[name], len(part.row), with_pole, wishes.controls, with_body)
            made[part] = name
        except UserError as error:
            remarks.append(say("The {part} got no chain. {error}", part=say(part.words), error=error))
    # Adding control bones makes Blender recreate all pose bones.
    found = {part: ob.pose.bones[name] for part, name in made.items()}
    for part, tip in found.items():
        if part.region not in LIMBS:  # chest and head turn with their controls
            chain_of(tip).use_rotation = True
    return found


def _dress_trunk(ob: Object, figure: Figure, parts: Sequence[Member]) -> None:
    """Make the hips, the root bone above these and the shoulders controls as they are: the body turns them."""
    if not ob.is_editable:
        return
    ob.show_in_front = True  # else a skin hides most of them
    legs = [list(part.row) for part in parts if part.region is Region.LEG and not part.is_fore]
    hips, up = {bone for leg in legs if (bone := parent_bone_of(figure, leg)) is not None}, up_of(figure)
    if len(hips) == 1 and up is not None:
        (bone,) = hips
        length = max(float(np.linalg.norm(np.diff(figure.heads[leg], axis=0), axis=1).sum()) for leg in legs)
        top = list(figure.up(bone))[-1]
        for own, size in ((bone, AROUND_HIPS), (top, AROUND_ROOT))[: 1 + (top != bone)]:
            if figure.is_free([own]):
                make_controls.dress(ob.pose.bones[figure.names[own]], up, size * length)
    # After the hips, which may be no longer than a point: a bone that has a shape keeps it.
    for shoulder in {bone for part in parts if part.region in LIMBS for bone in figure.up(part.row[0])}:
        if part_of(figure, shoulder) is Part.GIRDLE and figure.is_free([shoulder]):
            length = figure.length(shoulder)
            along = np.array(ob.data.bones[figure.names[shoulder]].vector)
            make_controls.dress(ob.pose.bones[figure.names[shoulder]], along, AROUND_SHOULDER * length, 0.5 * length)


def last(ob: Object) -> Outcome | None:
    """Return the last outcome for an armature object while all its chains exist; None otherwise, as after an undo."""
    outcome = _last.get(ob.session_uid)
    is_current = outcome is not None and set(outcome.tips) <= {tip.name for tip in tips(ob)}
    return outcome if is_current else None


# ---- what is left alone, and what was not found


def _about(parts: Sequence[Member], sentence: str) -> list[str]:
    """Return a sentence about parts of a figure; empty if there are no parts."""
    return [say(sentence, parts=", ".join(say(part.words) for part in parts))] if parts else []


def _those_with(figure: Figure, parts: Sequence[Member], rows: Sequence[Sequence[PoseBone]]) -> list[Member]:
    """Return the parts that share bones with one of these rows, root first, or are in the same place as one."""
    indices = [[figure.names.index(bone.name) for bone in row] for row in rows]
    return [
        part
        for part in parts
        if any(not set(row).isdisjoint(part.row) or body.are_twins(figure, part.row, row) for row in indices)
    ]


def _constrained(ob: Object) -> list[list[PoseBone]]:
    """Return the bones that each IK constraint of an armature object moves, root first."""
    return [source.bones for source in sources(ob) if source.tip is not None]


def _left_out(
    ob: Object, figure: Figure, found: Sequence[Member], with_constraint: list[Member], regions: frozenset[Region]
) -> Iterator[str]:
    """Yield sentences about parts that constraints move and parts that were not found."""
    moved: list[Member] = []
    absent = body.missing(found, regions)
    if absent and figure.steered:
        all_parts = body.find_members(replace(figure, steered={}))
        absent = body.missing(all_parts, regions)
        known = {part.words for part in found}
        moved = [part for part in all_parts if part.region in regions and part.words not in known]
    by_ik = _those_with(figure, moved, _constrained(ob))
    yield from _about([*with_constraint, *by_ik], WITH_CONSTRAINTS)
    use_rig = marked("Constraints move the bones of these parts. Use the rig's controls instead: {parts}")
    yield from _about([part for part in moved if part not in by_ik], use_rig)
    if absent:
        names = ", ".join(map(say, absent))
        yield say("Not found by name or shape. Use Add Chain instead: {parts}", parts=names)


# ---- presets


def _apply_presets(context: Context, made: Mapping[Member, PoseBone], before: Mapping[str, Floats]) -> list[str]:
    """Apply the presets of human joints to a live armature, except those that would change the pose.

    `before` holds the pose matrix (4, 4) of each bone.
    """
    applied: dict[Member, ExitStack] = {}
    limited, slanted, outside = [], [], []
    for member, tip in made.items():
        if member.region not in PRESETS:
            continue
        if not all(map(is_free, chain_bones(tip))):
            limited.append(member)
            continue
        settings = profile.profile_of(context)
        profile.clear(settings)
        profile.read_file(profile.SHIPPED / PRESETS[member.region], settings)
        before_preset = _kept(tip)
        if profile.apply(settings, chain_bones(tip)):
            before_preset.close()
            slanted.append(member)
        else:
            applied[member] = before_preset
    beyond = {member: exceeded(made[member]) for member in applied}
    for limits in beyond.values():
        fit(limits)
    context.view_layer.update()
    for member, before_preset in applied.items():
        if _moved(context, made[member], before) > NEAR:
            before_preset.close()
            context.view_layer.update()
            outside.append(member)
    fitted = [pair for member, limits in beyond.items() if member not in outside for pair in limits.items()]
    widened, removed = (
        [bone.name for bone, ranges in fitted if np.isfinite(ranges).any() == some] for some in (True, False)
    )
    unfit = marked("The bone axes of these parts don't match how they bend, so no limits were added: {parts}")
    return [
        *_about(limited, marked("These parts keep their existing limits: {parts}")),
        *_about(outside, marked("The pose of these parts is outside human limits, so no limits were added: {parts}")),
        *_about(slanted, unfit),
        *([say(WIDENED, names=quoted(widened))] if widened else []),
        *([say(REMOVED, names=quoted(removed))] if removed else []),
    ]


def _moved(context: Context, tip: PoseBone, before: Mapping[str, Floats]) -> float:
    """Return how far the bones of a chain moved from their poses (4, 4), in its lengths, or how much they turned."""
    ob, bones = tip.id_data, chain_bones(tip)
    after = read_poses(ob, context.evaluated_depsgraph_get())[[ob.pose.bones.find(bone.name) for bone in bones]]
    moved = np.abs(after - [before[bone.name] for bone in bones])
    return max(float(moved[:, :3, 3].max()) / sum(bone.bone.length for bone in bones), float(moved[:, :3, :3].max()))


def _kept(tip: PoseBone) -> ExitStack:
    """Return what puts back everything that a preset may change about the chain on `tip`."""
    undo = ExitStack()
    undo.callback(compat.tag, tip.id_data)
    for owner, names in [*((bone, SETTINGS) for bone in chain_bones(tip)), (chain_of(tip), profile.SETTINGS)]:
        for name in names:
            undo.callback(setattr, owner, name, getattr(owner, name))
    return undo
