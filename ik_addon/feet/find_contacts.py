"""Finding contacts over a range of frames, and keying them on their chains."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from bpy.types import Context, Object, PoseBone

from ..bake.restore import over_frames
from ..core import contact_keys, keyframes
from ..core.steps import part
from ..rig.plan.chain import end_of
from ..solve.maths.products import lengths_of
from ..solve.maths.runs import runs
from ..solve.problem import Bools
from ..targets.snapped import Chain
from . import pivots
from .contacts import HEEL, TOE, Criteria, Path, Rests, find_contacts, without_held
from .foot_track import Foot
from .ground_object import UP, Ground
from .sampled_feet import Feet, sample


def key_contacts(
    context: Context,
    ob: Object,
    tips: Sequence[PoseBone],
    frames: Sequence[int],
    *,
    on: Object | None = None,
    floor: Object | None = None,
    sensitivity: float = 1.0,
    shortest: float = HEEL.shortest,
) -> Generator[float, None, int]:
    """Find and key contacts on a range of frames; yields progress (0 to 1). Closing the generator undoes everything.

    Args:
        context: gives the scene and the view layer.
        ob: the armature object.
        tips: the tip bones of the chains.
        frames: ascending frames; contact keys from the first to the last are replaced.
        on: what the feet stand on; None if that doesn't move.
        floor: the ground, if it is known; a foot that rests in the air above it doesn't touch it.
        sensitivity: higher values also accept faster and higher contacts.
        shortest: minimum duration of a contact, in seconds.

    Returns:
        The number of contacts found.

    Raises:
        UserError: contacts can't be found or keyed; nothing was changed.
    """
    view_layer, scene = context.view_layer, context.scene
    rate = scene.render.fps / scene.render.fps_base
    with over_frames(view_layer, ob) as (undo, before):
        keyframes.check(ob, [contact_keys.channel(tip, np.zeros(1)) for tip in tips])
        with ExitStack() as aside:
            feet = yield from part(sample(context, ob, tips, frames, on, floor, aside), 0.0, 0.8)
        chains, found, seen = feet.snap.chains, [], []
        for chain in chains:
            tip, foot, length = feet.tip(chain), feet.foot(chain), feet.length(chain)
            own = pivots.of(feet.figure, tip)
            undo.callback(pivots.store, tip, pivots.stored(tip))
            pivots.store(tip, own)
            parts = (HEEL, TOE) if end_of(tip) is not None else (HEEL,)
            contacts = np.zeros((2, len(frames)), dtype=bool)
            for pivot, criteria in enumerate(parts):
                path = Path(foot.points(pivot), UP, length, rate)
                contacts[pivot] = find_contacts(path, _as_wanted(criteria, sensitivity, shortest))
            found.append(contacts)
            seen.append(foot)
        legs = [i for i, chain in enumerate(chains) if pivots.is_of_leg(feet.figure, feet.tip(chain))]
        surface = yield from part(feet.look_at([chains[i] for i in legs]), 0.8, 0.95)
        rests = [_rests(feet, chains[i], seen[i], found[i], surface) for i in legs]
        for i, contacts in zip(legs, without_held(rests), strict=True):
            found[i] = contacts
        for chain, contacts in zip(chains, found, strict=True):
            contact_keys.write(feet.tip(chain), contacts, feet.times, undo)
        yield 0.95
        before.restore()
    return sum(len(runs(np.asarray(contacts.any(axis=0)))) for contacts in found)


def _rests(feet: Feet, chain: Chain, foot: Foot, contacts: Bools, surface: Ground | None) -> Rests:
    """Return how high and how tilted a foot rests."""
    length = feet.length(chain)
    points = [foot.points(pivot) for pivot in range(2)]
    way = points[1] - points[0]
    return Rests(
        contacts,
        np.stack([own[:, 2] for own in points]) / length,
        None if surface is None else surface.heights(np.stack(points, axis=1)).T / length,
        np.abs(way[:, 2]) / np.maximum(lengths_of(way), 1e-300),
    )


def _as_wanted(criteria: Criteria, sensitivity: float, shortest: float) -> Criteria:
    wider = {
        name: sensitivity * getattr(criteria, name) for name in ("slow", "fast", "leaving", "still", "high", "low")
    }
    return replace(criteria, shortest=shortest, **wider)
