"""Feet that stand still while they touch: they roll about heel and toe, and ease into and out of contact.

All frames are solved at once. While heel and toe both touch, the foot keeps one orientation; while one of them does, it
rolls about that point as in the clip. Points in contact stay in place except for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.maths.rotations import about_vectors, inverse, multiply, rotate, vectors_of
from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats
from .filling import bridged, eased, faded, numbered
from .foot_track import HEEL, TOE, Foot
from .on_ground import Ground

LEAN = np.radians(10.0)
"""The largest angle by which a foot turns about its toe to spare the leg."""

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
    flats = [
        _Flat(
            start,
            end,
            ((HEEL, int(numbers[HEEL][start])), (TOE, int(numbers[TOE][start]))),
            _mean(tilted.turns[:, start:end]),
        )
        for start, end in runs(np.asarray(foot.contacts.all(axis=0)))
    ]
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
    lying = {first: ground.put_on(frame[first], places[first])}
    for flat in flats:
        arm, level = _toe_from_heel(flat, source), _mean(source.turns[:, flat.start : flat.end])
        sign = 1.0 if flat.contacts[HEEL] in lying else -1.0
        known = lying[flat.contacts[HEEL if sign > 0.0 else TOE]]
        found = ground.lay(flat.start, known, sign * arm, flat.turn, level)
        flat.turn = found.turn
        _put_other(lying, flat, sign * found.arm)
    lift = max(ground.depth(frame[contact], place) for contact, place in lying.items())
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
