"""React to chains that are added, removed or set, and to Live being switched."""

from __future__ import annotations

from collections.abc import Collection

import bpy
import numpy as np

from ..core import chain_settings, channels, compat, fk_store, settings
from ..core.settings import chain_of, note_layout, object_of
from ..rig.plan import chain
from ..rig.read import fcurves
from . import reports
from .registry import registry
from .state import State


def settings_changed(ob: bpy.types.Object) -> None:
    """Plan again: a chain of this armature was added, removed, switched or given another goal."""
    note_layout(ob)
    own = registry.of(ob)
    own.is_stale = True
    own.failed.clear()
    if own.state is State.FAILED:
        own.state = State.UNKNOWN
    if ob.session_uid in registry.paused:
        return  # the caller that paused it makes more changes, and calls this afterwards
    if object_of(ob).live:
        compat.tag(ob)
    elif ob.is_editable:
        _release_unused(ob)


def live_switched(ob: bpy.types.Object) -> None:
    """Start solving live, or restore the FK pose: Live was switched on or off for this armature."""
    registry.live.clear()
    rig = registry.of(ob).rig
    registry.armatures.pop(ob.session_uid)
    if object_of(ob).live:
        compat.tag(ob)
    elif ob.is_editable:  # a non-editable override keeps what its library had solved; that is dropped as well
        if rig is not None and rig.plan.skeleton.matches(ob):
            rig.bones.release(ob, rig.plan.live.tolist())
        _give_back(ob, fk_store.stored_bones(ob))
    if not object_of(ob).live:
        reports.clear(ob)


def _release_unused(ob: bpy.types.Object) -> None:
    """Restore the FK pose of bones that no chain poses any more, as far as they still hold the solution."""
    stored = fk_store.stored_bones(ob)
    if not stored:
        return
    index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
    used = {index[b.name] for tip in chain.tips(ob) if chain_of(tip).enabled for b in chain.posed_bones(tip)}
    _give_back(ob, set(stored) - used)


def _give_back(ob: bpy.types.Object, stored: Collection[int]) -> None:
    """Put bones back into their stored FK pose and forget it, except where they moved since the last solution."""
    bones = np.array(sorted(stored), dtype=np.int64)
    channels.write(ob, bones, fk_store.held(ob, bones, fcurves.animated(ob, bones)))
    fk_store.forget(ob, bones.tolist())


LISTENERS = (
    (chain_settings.on_chain_changed, settings_changed),
    (settings.on_live_switched, live_switched),
)
