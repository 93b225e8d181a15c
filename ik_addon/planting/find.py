"""Contacts found over a range of frames, and keyed on their chains."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import bpy
import numpy as np

from ..bake.baking import part
from ..bake.restore import SceneSnapshot
from ..bake.selection import check_armature, time_scale
from ..clip.contacts import HEEL, TOE, Criteria, Path, find_contacts
from ..clip.filling import runs
from ..pose import keyframes
from ..rig.plan.chain import end_of
from . import contact_keys, pivots
from .feet import sample

UP = np.array([0.0, 0.0, 1.0])


def steps(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int],
    *,
    on: bpy.types.Object | None = None,
    sensitivity: float = 1.0,
    shortest: float = HEEL.shortest,
) -> Generator[float, None, int]:
    """Find the contacts of chains on a range of frames, and key them; closing the generator takes everything back.

    Args:
        context: for the scene and the view layer.
        ob: the armature object.
        tips: of the chains.
        frames: ascending; keys of contacts from the first to the last are replaced.
        on: what the feet stand on; None: on what doesn't move.
        sensitivity: more finds contacts that are faster and higher.
        shortest: seconds that a contact lasts at least.

    Returns:
        How many contacts there are.

    Raises:
        SnapError, KeysError, BakeError: it can't be done; nothing was changed.
    """
    view_layer, scene = context.view_layer, context.scene
    view_layer.update()
    check_armature(ob, view_layer)
    keyframes.check(ob, [contact_keys.channel(tip, np.zeros(1)) for tip in tips])
    rate = scene.render.fps / scene.render.fps_base
    times = time_scale(scene) * np.array(frames, dtype=np.float64)
    count = 0
    with ExitStack() as undo:
        undo.callback(view_layer.update)
        before = SceneSnapshot(view_layer, ob)
        undo.callback(before.restore)
        with ExitStack() as aside:
            feet = yield from part(sample(context, ob, tips, frames, on, [], aside), 0.0, 0.9)
        for chain in feet.snap.chains:
            tip, foot, length = feet.tip(chain), feet.foot(chain), feet.length(chain)
            own = pivots.of(feet.figure, tip)
            undo.callback(pivots.store, tip, pivots.stored(tip))
            pivots.store(tip, own)
            parts = (HEEL, TOE) if end_of(tip) is not None else (HEEL,)
            contacts = np.zeros((2, len(frames)), dtype=bool)
            for pivot, criteria in enumerate(parts):
                path = Path(foot.points(pivot), UP, length, rate)
                contacts[pivot] = find_contacts(path, _as_wanted(criteria, sensitivity, shortest))
            contact_keys.write(tip, contacts, times, undo)
            count += len(runs(np.asarray(contacts.any(axis=0))))
            yield 0.95
        before.restore()
        undo.pop_all()
    view_layer.update()
    return count


def _as_wanted(criteria: Criteria, sensitivity: float, shortest: float) -> Criteria:
    return replace(
        criteria,
        slow=criteria.slow * sensitivity,
        fast=criteria.fast * sensitivity,
        still=criteria.still * sensitivity,
        high=criteria.high * sensitivity,
        low=criteria.low * sensitivity,
        shortest=shortest,
    )
