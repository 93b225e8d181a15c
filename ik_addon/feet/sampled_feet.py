"""The feet and hands of an armature over many frames, as arrays, and what they stand on."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from bpy.types import Context, Object, PoseBone, ViewLayer

from ..anatomy import body
from ..anatomy.figure import Figure
from ..anatomy.sides import is_leg
from ..bake.scene import time_scale
from ..chains.current_pose import Limb
from ..core import contact_keys, keyframes
from ..core.goals import Goal
from ..core.names import chain_name
from ..core.settings import chain_of
from ..core.skeleton import inverse, moved, size_of, unscaled
from ..core.translation.sentences import UserError
from ..live import registry
from ..rig.plan.chain import chain_bones, end_of
from ..rig.plan.chain import tips as tips_of
from ..rig.read.sample import orientation
from ..solve.maths.products import applied, back_applied
from ..solve.maths.products import times as product
from ..solve.maths.rotations import quaternions
from ..solve.problem import Bools, Floats
from ..targets.movable import channels_of, key_goals, parents_of, pole_of, target_of
from ..targets.snap import Chain, Poles, Sampled, Sampler, Snap, in_fk, rows_of
from . import original_keys
from .filling import eased
from .ground_object import Ground, read_ground, still
from .standing import Foot


@dataclass(frozen=True)
class Feet:
    """The hands and feet of chains on F frames."""

    view_layer: ViewLayer
    frames: Sequence[int]
    times: Floats
    """(F,) times of these frames in the action."""
    snap: Snap
    """The chains, and their targets in the same order."""
    sampled: Sampled
    support: Floats
    """(F, 4, 4) world matrices of what they stand on, without scale."""
    ground: tuple[Object, Floats] | None
    """The ground, and its world matrices (F, 4, 4); None if there is none."""
    hips: int | None
    """Index of the bone that carries all of the limbs; None if no single bone does."""
    along: Sequence[tuple[PoseBone, Goal]]
    """What goes along with it, see `_followers`."""
    standing: Feet | None = None
    """The feet that were planted earlier and stay where they are: they need the hips where these are; None: none."""

    @cached_property
    def figure(self) -> Figure:
        """The skeleton."""
        return Figure.of(self.snap.ob)

    def tip(self, chain: Chain) -> PoseBone:
        """Return the tip bone of a chain, which holds its settings."""
        return self.snap.ob.pose.bones[chain.tip]

    def contacts(self, chain: Chain) -> Bools:
        """Return the keyed contacts (2, F) of heel and toe."""
        return contact_keys.read(self.tip(chain), self.times)

    @cached_property
    def _limbs(self) -> dict[str, Limb]:
        """The limb of each chain, by the name of its tip bone."""
        return {chain.tip: self.snap.limbs(self.sampled, chain) for chain in self.snap.chains}

    @cached_property
    def _lengths(self) -> dict[str, float]:
        scale = size_of(self.sampled.world[0])
        return {tip: float(np.median(limbs.length) * scale) for tip, limbs in self._limbs.items()}

    def length(self, chain: Chain) -> float:
        """Return the length of the limb, in world space."""
        return self._lengths[chain.tip]

    @property
    def longest(self) -> float:
        """The length of the longest limb, in world space."""
        return max(self._lengths.values())

    def roots(self, chain: Chain) -> Floats:
        """Return where (F, 3) the limb begins, in world space."""
        return moved(self.sampled.world, self._limbs[chain.tip].joints[:, 0])

    def keep_pivots(self, chain: Chain, undo: ExitStack) -> None:
        """Store heel and toe in the settings of a chain; `undo` puts back what was stored."""
        tip = self.tip(chain)
        undo.callback(store_pivots, tip, _stored_pivots(tip))
        store_pivots(tip, pivots_of(self.figure, tip))

    def foot(self, chain: Chain) -> Foot:
        """Return the hand or foot, seen from what it stands on: as its target has it, or in FK if that has no keys."""
        goal = self.snap.goals[chain.target]
        world, target = self.sampled.world[:, :3, :3], self.sampled.goals[:, chain.target]
        if goal.is_keyed and goal.turns:
            where = target
            seen = orientation(product(inverse(self.sampled.world[:1]), target[:1]))
            bone = product(world[:1], product(seen, chain.end_axes))
        else:
            poses = self.sampled.poses[:, self.snap.sampler.rows([chain.turning])[0]]
            where = product(self.sampled.world, poses)
            bone = where[:1, :3, :3]
            where = where.copy()
            where[:, :3, 3] = target[:, :3, 3] if goal.is_keyed else self.ends(chain)
        return self._seen(chain, where, bone)

    def shown(self, chain: Chain, places: Floats, poses: Floats) -> Foot:
        """Return the hand or foot of a chain from its end `places` (F, 3) and bone `poses` (F, 4, 4) in pose space.

        If there are none, NaN: as `foot`.
        """
        if np.isnan(places).all():
            return self.foot(chain)
        where = product(self.sampled.world, poses)
        where[:, :3, 3] = moved(self.sampled.world, places)
        return self._seen(chain, where, where[:1, :3, :3])

    def _seen(self, chain: Chain, where: Floats, bone: Floats) -> Foot:
        """Return a foot, in the space of what it stands on, from world matrices (F, 4, 4).

        `bone` has the axes (1, 3, 3) of the end bone in the world on the first frame.
        """
        turns, seen = orientation(where), inverse(self.support)
        heel_and_toe = np.zeros((2, 3)) if chain.end is None else pivots_of(self.figure, self.tip(chain))
        return Foot(
            places=moved(seen, where[:, :3, 3]),
            turns=quaternions(np.moveaxis(product(seen[:, :3, :3], turns), 0, -1)),
            pivots=back_applied(turns[:1], applied(bone, heel_and_toe)),
            contacts=np.zeros((2, len(where)), dtype=bool),
        )

    def ends(self, chain: Chain) -> Floats:
        """Return where (F, 3) the limb ends in the FK pose, in world space."""
        return moved(self.sampled.world, self._limbs[chain.tip].joints[:, -1])

    def look_at(self, chains: Sequence[Chain]) -> Generator[float, None, Ground | None]:
        """Sample the ground that some of the feet pass, if there is any; yields progress (0 to 1)."""
        if self.ground is None:
            return None
        frames, places = self.frames, [self.foot(chain).places for chain in chains]
        way = np.array(places).reshape(-1, len(frames), 3).swapaxes(0, 1)
        with registry.paused(self.snap.ob):
            return (yield from read_ground(self.view_layer, *self.ground, frames, self.support, way, self.longest))


def sample(
    context: Context,
    tips: Sequence[PoseBone],
    frames: Sequence[int],
    on: Object | None,
    ground: Object | None,
    undo: ExitStack,
) -> Generator[float, None, Feet]:
    """Sample the feet of chains on frames, as they were before planting; yields progress (0 to 1).

    Args:
        context: gives the view layer.
        tips: the tip bones of the chains, one or more of one armature.
        frames: ascending frames.
        on: what the feet stand on; None if that doesn't move.
        ground: what they must not go through, if anything.
        undo: undoes putting the earlier keys back.

    Raises:
        UserError: a chain can't be used.
    """
    ob, times = tips[0].id_data, time_scale(context.scene) * np.array(frames, dtype=np.float64)
    rest = [tip for tip in tips_of(ob) if tip not in tips and _stands(tip, times)]
    whole = Snap.of(context.view_layer, ob, [*tips, *rest], False, Poles.KEEP)
    figure = Figure.of(ob)
    first = [figure.names.index(whole.skeleton.names[chain.bones[0]]) for chain in whole.chains[: len(tips)]]
    carrying = {body.root_of(figure, bone) for bone in first}
    hips = ob.pose.bones.find(figure.names[carrying.pop()]) if len(carrying) == 1 else None
    more = [] if hips is None else [bone for bone in (hips, whole.skeleton.parents[hips]) if bone >= 0]
    extra = [Goal(other) for other in (ground, on) if other is not None]
    bones = np.union1d(whole.sampler.bones, np.array(more, dtype=np.int64))
    sampler = replace(whole.sampler, bones=bones, goals=[*whole.goals, *extra])
    along = [] if hips is None else _followers(ob, tips, ob.pose.bones[hips])
    carried: list[Goal] = []
    if hips is not None and not rest:  # feet planted earlier need the hips where they are
        carried = [Goal(ob, ob.pose.bones[hips].name), *(goal for _tip, goal in along)]
    original_keys.put_back([*whole.goals[: len(tips)], *carried], times, undo)
    with sampler.alone, in_fk(context, ob, [*tips, *rest]) if sampler.is_solved else nullcontext():
        found = yield from sampler.sample(context.view_layer, frames)
    support = still(len(frames)) if on is None else unscaled(found.goals[:, -1])

    def feet(chains: slice, standing: Feet | None) -> Feet:
        count = len(whole.chains[: chains.stop])
        parents = np.where(found.parents[:, :count] < count, found.parents[:, :count], -1)
        own = replace(found, goals=found.goals[:, :count], spaces=found.spaces[:, :count], parents=parents)
        snap = replace(whole, sampler=sampler, chains=whole.chains[chains], goals=whole.goals[:count])
        below = None if ground is None else (ground, found.goals[:, len(whole.goals)])
        made = Feet(context.view_layer, frames, times, snap, own, support, below, hips, along, standing)
        for chain in snap.chains:
            if not made.length(chain) > 0.0:
                name = chain_name(ob.pose.bones[chain.tip])
                raise UserError("'{object}' is scaled to zero. Reset its scale", object=name)
        return made

    return feet(slice(len(tips)), feet(slice(len(tips), None), None) if rest else None)


def _stands(tip: PoseBone, times: Floats) -> bool:
    """Return whether planting keyed the target of a chain on frames on which it touches, at `times` of the action."""
    target, touches = target_of(tip), contact_keys.read(tip, times).any()
    return target is not None and bool(touches) and original_keys.is_planted(target, times)


def _followers(ob: Object, planted: Collection[PoseBone], hips: PoseBone) -> list[tuple[PoseBone, Goal]]:
    """Return what follows the hips of an armature when some of its chains are planted, each with the tip of its chain.

    That is never a goal of a leg. Planting itself places the targets of the planted chains. Goals without keys, and
    goals that a constraint, a lock or another object holds, stay where they are. Goals attached to the body follow it
    by themselves.
    """
    figure, found = Figure.of(ob), []
    carrying = {*parents_of(ob, ""), Goal(ob), *(Goal(ob, bone.name) for bone in hips.parent_recursive)}
    for tip in tips_of(ob):
        target, pole = target_of(tip), pole_of(tip)
        if chain_of(tip).enabled and target is not None and not is_of_leg(figure, tip):
            both = (None if tip in planted else target, pole)
            found += [(tip, goal) for goal in both if goal is not None and _is_free(goal, carrying)]
    return found


def _is_free(goal: Goal, carrying: set[Goal]) -> bool:
    """Return whether only keys move a target or pole, apart from parents that move the hips as well."""
    is_attached = not carrying.issuperset(parents_of(goal.ob, goal.bone))
    if not goal.is_keyed or is_attached or any(not own.mute for own in goal.holder.constraints):
        return False
    with suppress(UserError):
        keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
        return True
    return False


# ---- the points at which the hand or foot of a chain touches, stored in the settings of the chain


def is_of_leg(figure: Figure, tip: PoseBone) -> bool:
    """Return whether a chain is on a leg."""
    return is_leg(figure, _row(figure, tip))


def _stored_pivots(tip: PoseBone) -> Floats:
    """Return the stored heel and toe (2, 3), in the axes of the end bone from its head; zero where none is stored."""
    chain = chain_of(tip)
    return np.array([chain.heel_pivot, chain.toe_pivot], dtype=np.float64)


def found_pivots(figure: Figure, tip: PoseBone) -> Floats:
    """Return heel and toe (2, 3) as derived from the bones, in the axes of the end bone from its head."""
    end = end_of(tip)
    if end is None:
        return np.zeros((2, 3))
    points = np.array(body.pivots_of(figure, _row(figure, tip), figure.names.index(end.name)))
    axes = np.array(end.bone.matrix_local.to_3x3(), dtype=np.float64)
    away = points - figure.heads[figure.names.index(end.name)]
    return np.asarray((away[:, :, None] * axes[None]).sum(axis=1))


def pivots_of(figure: Figure, tip: PoseBone) -> Floats:
    """Return the stored heel and toe (2, 3), or those derived from the bones if none are stored."""
    own = _stored_pivots(tip)
    return own if own.any() else found_pivots(figure, tip)


def store_pivots(tip: PoseBone, pivots: Floats) -> None:
    """Store heel and toe (2, 3) in the settings of a chain."""
    chain = chain_of(tip)
    chain.heel_pivot, chain.toe_pivot = pivots.tolist()


def _row(figure: Figure, tip: PoseBone) -> list[int]:
    return [figure.names.index(bone.name) for bone in chain_bones(tip)]


# ---- hands, the head and other goals, keyed so that they move with the hips, unless something holds them


def follow(feet: Feet, moved: Floats, blend: int, undo: ExitStack) -> Generator[float, None, list[Goal]]:
    """Key the goals that go along with the hips; yields progress (0 to 1).

    Args:
        feet: the planted feet.
        moved: (F, 3) how far the hips were moved, in world space.
        blend: frames over which the movement fades out towards a contact; during contacts the goal stays.
        undo: takes the keys back.

    Returns:
        The goals that were keyed.
    """
    ob, frames, at = feet.snap.ob, feet.frames, feet.times
    goals = [goal for _tip, goal in feet.along]
    if not goals or not moved.any():
        return []
    places = [replace(goal, turns=False) for goal in goals]
    sampler = Sampler.of(ob, [], places, shown=False)
    with sampler.alone:
        sampled = yield from sampler.sample(feet.view_layer, frames)
    wanted = sampled.goals[:, :, :3, 3].copy()
    for g, (tip, _goal) in enumerate(feet.along):
        wanted[:, g] += moved - eased(moved, np.asarray(contact_keys.read(tip, at).any(axis=0)), blend)
    rows = rows_of(places, sampled, wanted, {})
    old = [original_keys.before(goal, at) for goal in goals]
    for goal in goals:
        undo.callback(goal.set_row, goal.row())
    key_goals(places, rows, at, undo)
    for goal, keys in zip(goals, old, strict=True):
        original_keys.keep(goal, keys, at, undo, along=True)
    return goals
