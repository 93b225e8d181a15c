"""Feet that stand still while they touch: they roll about heel and toe, and ease into and out of contact.

All frames are solved at once. While heel and toe both touch, the foot keeps one orientation; while one of them does, it
rolls about that point as in the clip. Points in contact stay in place except for rounding. On a ground, which is any
`Surface`, feet lie on it and follow its slope where they touch, and stay out of it everywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.maths.rotations import about_vectors, between, inverse, multiply, rotate, unit, vectors_of
from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats, Ints
from .filling import beside, bridged, eased, faded, numbered

HEEL, TOE = 0, 1
LEAN = np.radians(10.0)
"""The largest angle by which a foot turns about its toe to spare the leg."""
BUMP = np.radians(15.0)
"""Heel and toe both lie on the ground if that turns the foot by no more than this from the ground's slope."""
STEEP = 0.999
"""The sine of the steepest foot. Beyond it, the foot's heading is undefined."""
PASSES = 8
"""Maximum passes of raising a foot and checking again: on a slope it also moves sideways."""
WAITS = 4
"""Number of waiting times tried at an edge."""
LAST = 3
"""Final passes that raise the foot as a whole, however steep the ground is where it goes."""


@dataclass(frozen=True)
class Foot:
    """A foot or hand on F frames, and its contacts."""

    places: Floats
    """(F, 3) positions of its joint."""
    turns: Floats
    """(4, F) orientations as unit quaternions."""
    pivots: Floats
    """(2, 3) heel and toe relative to the joint, in the foot's own axes."""
    contacts: Bools
    """(2, F) whether heel and toe touch."""

    def points(self, pivot: int) -> Floats:
        """Return positions (F, 3) of the heel (0) or the toe (1)."""
        return self.places + self.turned(self.pivots[pivot])

    @property
    def touches(self) -> Bools:
        """Whether (F,) heel or toe touches."""
        return np.asarray(self.contacts.any(axis=0))

    def slide(self) -> float:
        """Return the largest distance of a point in contact from where it began to touch."""
        return max(slide_of(self.points(pivot), self.contacts[pivot]) for pivot in (HEEL, TOE))

    def turned(self, vectors: Floats) -> Floats:
        """Return vectors (3,) or (F, 3) given in the foot's axes, rotated with the foot on each frame."""
        return np.asarray(rotate(self.turns, np.broadcast_to(vectors, self.places.shape).T).T)

    @cached_property
    def share(self) -> Floats:
        """The point (F,) about which the foot rolls, from 0 (heel) to 1 (toe); 1 where both touch."""
        if not self.touches.any():
            return np.full(len(self.places), 0.5)
        return bridged(self.contacts[TOE].astype(np.float64)[:, None], self.touches)[:, 0]

    @property
    def rolling(self) -> Floats:
        """The point (F, 3) about which the foot rolls, in its own axes."""
        return np.asarray(self.pivots[HEEL] + self.share[:, None] * (self.pivots[TOE] - self.pivots[HEEL]))


def slide_of(points: Floats, touching: Bools) -> float:
    """Return the largest distance of a point (F, 3) from where it began to touch, over the frames `touching` (F,)."""
    gaps = [lengths_of(points[start:end] - points[start]).max() for start, end in runs(touching)]
    return float(max(gaps, default=0.0))


Contact = tuple[int, int]
"""Heel or toe, and the index among its contacts."""


@dataclass
class _Flat:
    """A span of frames on which a foot stands flat."""

    start: int
    end: int
    contacts: tuple[Contact, Contact]
    """The contact of the heel, and that of the toe."""
    turn: Floats
    """(4,) orientation of the foot."""


def plant(foot: Foot, length: int, ground: Ground | None = None) -> Foot:
    """Return the foot standing still where it touches, eased into and out of contact over `length` frames.

    With a ground, the foot stands on it, follows its slope, and never goes through it.
    """
    if foot.contacts.any():
        foot = _standing(foot, length, ground)
    return foot if ground is None else ground.clear(foot, length)


def _standing(foot: Foot, length: int, ground: Ground | None) -> Foot:
    under = np.zeros(len(foot.places), dtype=bool) if ground is None else ground.under(foot)
    tilted = foot if ground is None else ground.tilt(foot, under, length)
    numbers = [numbered(contacts) for contacts in foot.contacts]
    flats = []
    for start, end in runs(np.asarray(foot.contacts.all(axis=0))):
        heel, toe = ((pivot, int(numbers[pivot][start])) for pivot in (HEEL, TOE))
        flats.append(_Flat(start, end, (heel, toe), _mean(tilted.turns[:, start:end])))
    spans = {
        (pivot, run): numbers[pivot] == run for pivot in (HEEL, TOE) for run in range(int(numbers[pivot].max()) + 1)
    }
    held, level = np.zeros_like(foot.places), np.zeros_like(foot.places)
    places: dict[Contact, Floats] = {}
    for group in _tied(list(spans), flats):
        own = [flat for flat in flats if flat.contacts[0] in group]
        found = _placed(group, own, spans, foot)
        for contact in sorted(found):
            level[spans[contact]] = found[contact]
        if ground is not None and (under & spans[group[0]]).any():
            found = _laid(found, own, spans, foot, ground)
        places |= found
    for contact in sorted(places):  # where both touch, the toe wins
        held[spans[contact]] = places[contact]
    turns = multiply(about_vectors(_lean(foot, level, length).T), _flat_turns(tilted, flats, length))
    turned = replace(foot, turns=turns)
    there = foot.places + foot.turned(foot.rolling)
    moved = held - there
    if ground is None:
        moved = eased(moved, foot.touches, length)
    else:  # between two contacts, the foot goes up and down with them
        heights = (moved * ground.up).sum(axis=1, keepdims=True)
        moved = eased(moved - heights * ground.up, foot.touches, length) + bridged(heights, foot.touches) * ground.up
    return replace(turned, places=there + moved - turned.turned(foot.rolling))


def _flat_turns(foot: Foot, flats: Sequence[_Flat], length: int) -> Floats:
    """Return orientations (4, F): constant in each flat span, eased to those of the clip in between."""
    wanted, known = foot.turns.copy(), np.zeros(len(foot.places), dtype=bool)
    for flat in flats:
        wanted[:, flat.start : flat.end] = flat.turn[:, None]
        known[flat.start : flat.end] = True
    turns = vectors_of(multiply(wanted, inverse(foot.turns)))
    eased_turns = multiply(about_vectors(eased(turns.T, known, length).T), foot.turns)
    return np.asarray(np.where(known, wanted, eased_turns))


def _lean(foot: Foot, held: Floats, length: int) -> Floats:
    """Return turns (F, 3) about a toe held at places (F, 3) that bring the ankle to where it is in the clip.

    Where the toe of a clip slides as the heel rises, the ankle would otherwise go back with it, and the leg stretch.
    """
    arms, wanted = -foot.turned(foot.rolling), foot.places - held
    across = np.cross(arms, wanted)
    angles = np.arctan2(lengths_of(across), (arms * wanted).sum(axis=1))
    away = across * (np.minimum(angles, LEAN) / np.maximum(lengths_of(across), 1e-300))[:, None]
    rolls = foot.contacts[TOE] & ~foot.contacts[HEEL]
    away *= (rolls * (1.0 - faded(foot.contacts[TOE] & foot.contacts[HEEL], length)))[:, None]
    return eased(away, foot.touches, length)


def _mean(turns: Floats) -> Floats:
    """Return the mean (4,) of orientations (4, F) that differ little."""
    middle = turns[:, turns.shape[1] // 2, None]
    away = vectors_of(multiply(turns, inverse(np.broadcast_to(middle, turns.shape))))
    mean = multiply(about_vectors(away.mean(axis=1)[:, None]), middle)[:, 0]
    return np.asarray(mean / np.sqrt((mean * mean).sum()))


def _tied(contacts: Sequence[Contact], flats: Sequence[_Flat]) -> list[list[Contact]]:
    """Return contacts in groups: each flat span ties a contact of the heel to one of the toe."""
    groups = {contact: [contact] for contact in contacts}
    for heel, toe in (flat.contacts for flat in flats):
        if groups[heel] is not groups[toe]:
            groups[heel] += groups[toe]
            for contact in groups[toe]:
                groups[contact] = groups[heel]
    return list({id(group): group for group in groups.values()}.values())


def _placed(
    group: Sequence[Contact], flats: Sequence[_Flat], spans: dict[Contact, Bools], source: Foot
) -> dict[Contact, Floats]:
    """Return the places (3,) where tied contacts are held, moved as one to be nearest to the clip."""
    places = {flats[0].contacts[0] if flats else group[0]: np.zeros(3)}
    for flat in flats:
        _put_other(places, flat, _toe_from_heel(flat, source))
    compared = dict(spans)
    if flats:
        is_flat = source.contacts.all(axis=0)
        compared = {contact: np.asarray(spans[contact] & is_flat) for contact in group}
    away = [(source.points(contact[0]) - place)[compared[contact]] for contact, place in places.items()]
    shift = np.concatenate(away).mean(axis=0)
    return {contact: place + shift for contact, place in places.items()}


def _laid(
    places: dict[Contact, Floats], flats: Sequence[_Flat], spans: dict[Contact, Bools], source: Foot, ground: Ground
) -> dict[Contact, Floats]:
    """Return the places (3,) of tied contacts on the ground, and turn the flat spans so that the foot lies on it."""
    frame = {contact: int(np.flatnonzero(spans[contact])[0]) for contact in places}
    first = next(iter(places))
    gap = ground.gap(frame[first], places[first])
    lying = {first: places[first] + (gap if np.isfinite(gap) else 0.0) * ground.up[frame[first]]}
    for flat in flats:
        arm, level = _toe_from_heel(flat, source), _mean(source.turns[:, flat.start : flat.end])
        sign = 1.0 if flat.contacts[HEEL] in lying else -1.0
        known = lying[flat.contacts[HEEL if sign > 0.0 else TOE]]
        arm, flat.turn = ground.lay(flat.start, known, sign * arm, flat.turn, level)
        _put_other(lying, flat, sign * arm)
    lift = np.nanmax([0.0, *(ground.gap(frame[contact], place) for contact, place in lying.items())])
    return {contact: place + lift * ground.up[frame[contact]] for contact, place in lying.items()}


def _toe_from_heel(flat: _Flat, source: Foot) -> Floats:
    """Return the vector (3,) from heel to toe of a foot in a flat span."""
    return np.asarray(rotate(flat.turn[:, None], (source.pivots[TOE] - source.pivots[HEEL])[:, None])[:, 0])


def _put_other(places: dict[Contact, Floats], flat: _Flat, arm: Floats) -> None:
    """Add the place (3,) of the heel or the toe, whichever is unknown; `arm` (3,) goes from heel to toe."""
    heel, toe = flat.contacts
    if heel in places:
        places.setdefault(toe, places[heel] + arm)
    else:
        places[heel] = places[toe] - arm


# ---- the ground


class Surface(Protocol):
    """A ground on F frames."""

    def look(self, frames: Ints, points: Floats, *, only_inside: bool = False) -> tuple[Floats, Floats]:
        """Return how far (n,) below the surface points (n, 3) are on frames (n,), and the normals (n, 3) there.

        Negative above the surface, NaN where there is no ground above or below. With `only_inside`, which may be
        faster, points above the surface are NaN as well.
        """


class Ground(NamedTuple):
    """The ground of a foot, and how the foot follows it."""

    surface: Surface
    up: Floats
    """(F, 3) unit vectors."""
    slope: float
    """The largest angle, in radians, by which a foot turns to follow the ground."""
    pull: float
    """A contact comes down to the ground if it isn't farther above it than the contact before by more than this."""
    margin: float
    """Feet lie this far above the ground, so that rounding takes none below it."""
    sudden: float
    """A foot that would be raised by more than this per frame waits at the edge, where that helps."""

    def depth_of(self, foot: Foot) -> float:
        """Return how far heel or toe are below the surface itself at most; zero if never."""
        return max(float(self._depths(foot).max()) - self.margin, 0.0)

    def under(self, foot: Foot) -> Bools:
        """Return whether (F,) the ground is near enough to be what the foot touches."""
        gaps = np.stack([self._look(foot.points(pivot))[0] for pivot in (HEEL, TOE)])
        gaps = np.where(foot.contacts, gaps, np.nan)
        out, fall = np.zeros(len(foot.places), dtype=bool), 0.0
        for start, end in runs(foot.touches):
            own = gaps[:, start:end]
            own = own[np.isfinite(own)]
            if len(own) and own.max() >= min(fall, 0.0) - self.pull:
                out[start:end], fall = True, float(np.median(own))
        return out

    def lay(self, frame: int, known: Floats, arm: Floats, turn: Floats, level: Floats) -> tuple[Floats, Floats]:
        """Lay a flat foot on the ground, if it can follow the ground there.

        Args:
            frame: the frame.
            known: (3,) position of its heel or toe, which lies on the ground.
            arm: (3,) from there to the toe or heel.
            turn: (4,) orientation of the foot.
            level: (4,) orientation of the foot in the clip.

        Returns:
            The arm (3,) and the orientation (4,) of the foot on the ground, or those given.
        """
        size = max(float(np.sqrt((arm * arm).sum())), 1e-300)
        found = arm
        for _ in range(PASSES):
            gap = self.gap(frame, known + found)
            if not gap >= -size:
                return arm, turn
            found = found + gap * self.up[frame]
            found = found * (size / float(np.sqrt((found * found).sum())))
        bend = between(unit(arm[:, None]), unit(found[:, None]), np.array([[1.0], [0.0], [0.0]]))
        turned = multiply(bend, turn[:, None])
        if _angle(bend) > BUMP or _angle(multiply(turned, inverse(level[:, None]))) > self.slope + 1e-6:
            return arm, turn
        return found, turned[:, 0]

    def tilt(self, foot: Foot, under: Bools, length: int) -> Foot:
        """Return the foot turned to the slope of the ground `under` (F,) its contacts, eased over `length` frames."""
        turns = np.zeros_like(foot.places)
        weights = np.zeros(len(foot.places))
        for pivot in (HEEL, TOE):
            gaps, normals = self._look(foot.points(pivot))
            near = np.asarray(np.isfinite(gaps) & under & foot.contacts[pivot])
            found = vectors_of(between(self.up[near].T, unit(normals[near].T), np.array([[1.0], [0.0], [0.0]])))
            size = np.maximum(lengths_of(found.T), 1e-300)
            turns[near] += (found * np.minimum(1.0, self.slope / size)).T
            weights[near] += 1.0
        for start, end in runs(foot.touches):
            turns[start:end] = turns[start:end].sum(axis=0) / max(weights[start:end].sum(), 1.0)
        turns = eased(turns, foot.touches, length)
        return replace(foot, turns=multiply(about_vectors(turns.T), foot.turns))

    def clear(self, foot: Foot, length: int) -> Foot:
        """Return the foot, raised where it is below the surface, eased over `length` frames where it doesn't touch."""
        missed = self._needed(foot)
        waiting = self._waiting(foot, missed, length)
        if waiting is not foot:
            foot, missed = waiting, self._needed(waiting)
        needed, raised = np.zeros_like(missed), foot
        for _ in range(PASSES):
            if not missed.any():
                return raised
            needed += missed
            tilts, whole = _lifts(foot, needed, length)
            raised = self._raised(foot, tilts + whole)
            missed = self._needed(raised)
        for _ in range(LAST):
            raised = replace(raised, places=raised.places + self._needed(raised).max(axis=0)[:, None] * self.up)
        return raised

    def _waiting(self, foot: Foot, needed: Floats, length: int) -> Foot:
        """Return the foot, held back at edges where heel and toe, which need (2, F) to rise, would rise too suddenly.

        The foot stays longer over the place it leaves, or arrives earlier over the place it goes to, by the time that
        changes its speed least.
        """
        _tilts, lift = _lifts(foot, needed, length)
        places = foot.places
        for start, end in runs(~foot.touches):
            around = slice(max(start - 1, 0), end + 1)
            if float(np.abs(np.diff(lift[around])).max(initial=0.0)) <= self.sudden:
                continue
            own = Foot(places[around], foot.turns[:, around], foot.pivots, foot.contacts[:, around])
            best, least = own, self._fastest(around, own, own, length)
            for is_end in (False, True):
                begun = best
                for share in range(1, WAITS + 1):
                    tried = _held_back(begun, self.up[around], round(share * length / WAITS), is_end=is_end)
                    fastest = self._fastest(around, own, tried, length)
                    if fastest < least:
                        best, least = tried, fastest
            if best is not own:
                places = places.copy() if places is foot.places else places
                places[around] = best.places
        return foot if places is foot.places else replace(foot, places=places)

    def _fastest(self, around: slice, source: Foot, foot: Foot, length: int) -> float:
        """Return the largest change of velocity from `source`, per frame, if the foot moves as `foot` and is raised."""
        _tilts, lift = _lifts(foot, self._needed(foot, around.start), length)
        moved = foot.places - source.places + lift[:, None] * self.up[around]
        return float(lengths_of(np.diff(moved, axis=0)).max(initial=0.0))

    def _depths(self, foot: Foot, first: int = 0) -> Floats:
        """Return how far (2, F) heel and toe have to rise to lie on the ground; zero where not at all."""
        frames = np.arange(first, first + len(foot.places))
        # Points between surface and margin may be missed: contacts are put on the margin anyway.
        looks = (self.surface.look(frames, foot.points(pivot), only_inside=True)[0] for pivot in (HEEL, TOE))
        return np.stack([np.fmax(gaps + self.margin, 0.0) for gaps in looks])

    def _needed(self, foot: Foot, first: int = 0) -> Floats:
        """Return `_depths`, with zero where they are small enough to be rounding."""
        depths = self._depths(foot, first)
        return np.where(depths > 0.5 * self.margin, depths, 0.0)

    def _raised(self, foot: Foot, lifts: Floats) -> Foot:
        """Return the foot with heel and toe raised by (2, F)."""
        ways = foot.turned(foot.pivots[TOE] - foot.pivots[HEEL])
        rise = (ways * self.up).sum(axis=1)
        level = ways - rise[:, None] * self.up
        size = lengths_of(ways)
        turns = (size > 0.0) & (lengths_of(level) > (1.0 - STEEP) * size)
        sines = np.clip(np.stack([rise, rise + lifts[TOE] - lifts[HEEL]]) / np.where(turns, size, 1.0), -STEEP, STEEP)
        angles = np.where(turns, np.arcsin(sines[1]) - np.arcsin(sines[0]), 0.0)
        axes = unit(np.cross(level, self.up).T)
        turned = multiply(about_vectors(axes * angles), foot.turns)
        lift = np.where(turns, lifts[HEEL] + foot.share * (lifts[TOE] - lifts[HEEL]), np.maximum(*lifts))
        there = foot.places + foot.turned(foot.rolling) + lift[:, None] * self.up
        return replace(foot, turns=turned, places=there - np.asarray(rotate(turned, foot.rolling.T).T))

    def _look(self, points: Floats) -> tuple[Floats, Floats]:
        """Return `Surface.look` for points (F, 3), one per frame, with the margin added."""
        gaps, normals = self.surface.look(np.arange(len(points)), points)
        return gaps + self.margin, normals

    def gap(self, frame: int, point: Floats) -> float:
        """Return how far a point (3,) has to rise on a frame to lie on the ground; negative above it, NaN without."""
        return float(self.surface.look(np.array([frame]), point[None])[0][0]) + self.margin


def _angle(turn: Floats) -> float:
    return float(lengths_of(vectors_of(turn).T)[0])


def _lifts(foot: Foot, needed: Floats, length: int) -> tuple[Floats, Floats]:
    """Return how far (2, F) heel and toe rise in contact, and (F,) the whole foot in the air, where they need (2, F).

    A foot that touches can only tilt. In the air the tilt fades out and the foot rises as a whole: if it tilted by what
    an edge needs of a foot that points down, it would turn in an instant.
    """
    tilts = np.stack(
        [_swell(np.where(foot.touches, own, 0.0), at, length) for own, at in zip(needed, foot.contacts, strict=True)]
    )
    left = np.where(foot.touches, 0.0, np.maximum(needed - tilts, 0.0).max(axis=0))
    return tilts, _swell(left, foot.touches, length)


def _held_back(foot: Foot, up: Floats, wait: int, *, is_end: bool) -> Foot:
    """Return a foot between two contacts that stays over the first, or over the last, for about `wait` more frames."""
    known = np.zeros(len(foot.places), dtype=bool)
    known[-1 if is_end else 0] = True
    if not (foot.touches & known).any():
        return foot
    there = foot.places + foot.turned(foot.rolling)
    away = there[known] - there
    away -= (away * up).sum(axis=1, keepdims=True) * up
    return replace(foot, places=foot.places + faded(known, wait)[:, None] * away)


def _swell(needed: Floats, contacts: Bools, length: int) -> Floats:
    """Return a curve (F,) no lower than `needed` (F,) that swells smoothly over `length` frames between contacts."""
    reach = np.full(len(needed), length + 1.0)
    if contacts.any():
        away = np.abs(beside(contacts) - np.arange(len(needed)))
        reach = np.minimum(reach, away.min(axis=0))
    out = needed.copy()
    for away in range(1, length + 1):
        share = needed * 0.5 * (1.0 + np.cos(np.pi * np.minimum(away / np.maximum(reach, 1e-9), 1.0)))
        out[away:] = np.maximum(out[away:], share[:-away])
        out[:-away] = np.maximum(out[:-away], share[away:])
    return out
