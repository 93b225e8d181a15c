"""Upgrade settings that an older version of the extension wrote, when they are first seen.

An armature object with chains stores the layout of its settings (`object.ik_addon.layout`). Objects appear when a file
is opened, by appending and linking, and by undo, so each new object is checked, however it came. Linked data stays as
in its library: code that reads a setting whose meaning has changed asks this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import bpy

from ..solve import Solver
from . import chain_settings, fk_store
from .chain_settings import IKAddonChain
from .settings import chain_of, is_tip, object_of

FABRIK_IS_FABRIK = 2
"""The layout from which on FABRIK means FABRIK; before, the name stood for an even bend."""


def _from_0(ob: bpy.types.Object) -> None:
    """0.1.0 stored no layout, and stored the FK pose of each bone on the bone even if it was the rest pose."""
    fk_store.compact(ob)


def _from_1(ob: bpy.types.Object) -> None:
    """0.1.0 called an even bend FABRIK, and solved chains with stiffness but without limits like those with limits."""
    for tip in ob.pose.bones:
        if not is_tip(tip):
            continue
        chain = chain_of(tip)
        if chain.solver == Solver.FABRIK.value:
            chain.solver = Solver.EVEN_BEND.value
        if any(getattr(bone, f"ik_stiffness_{axis}") for bone in (tip, *tip.parent_recursive) for axis in "xyz"):
            chain.stiff_as_limited = True


STEPS: Final[list[Callable[[bpy.types.Object], None]]] = [_from_0, _from_1]
"""Step n upgrades an armature object from layout n to layout n + 1. It must not fail if data is missing."""
_under_way: Final[set[int]] = set()
"""Objects, by `session_uid`, that are being upgraded: the upgrade itself sets some settings."""


def newest() -> int:
    """Return the layout that this version of the extension writes."""
    return len(STEPS)


def bring_up(ob: bpy.types.Object) -> None:
    """Upgrade the settings of an armature object; leave those that are newer or linked alone."""
    own = object_of(ob)
    if ob.library is not None or ob.session_uid in _under_way:
        return
    _under_way.add(ob.session_uid)
    try:
        for number in range(max(0, own.layout), newest()):
            STEPS[number](ob)
            own.layout = number + 1
    finally:
        _under_way.discard(ob.session_uid)


def bring_up_all() -> None:
    """Upgrade all armature objects with chains."""
    for ob in bpy.data.objects:
        is_old = ob.type == "ARMATURE" and ob.pose is not None and object_of(ob).layout < newest()
        if is_old and any(map(is_tip, ob.pose.bones)):
            bring_up(ob)


def meant(solver: str, layout: int) -> Solver:
    """Return the solver that a setting stands for in the layout in which it was written."""
    found = Solver(solver)
    return Solver.EVEN_BEND if found is Solver.FABRIK and layout < FABRIK_IS_FABRIK else found


def solver_of(chain: IKAddonChain) -> Solver:
    """Return the solver of a chain, whichever version wrote its settings."""
    return meant(chain.solver, object_of(chain.id_data).layout)


def stiffness_is_shared(chain: IKAddonChain) -> bool:
    """Return whether stiffness shares out the bend of a chain without limits.

    0.1.0 solved such a chain like one with limits. Chains from then keep their poses: `stiff_as_limited`.
    """
    return not chain.stiff_as_limited and object_of(chain.id_data).layout >= FABRIK_IS_FABRIK


def _solver_chosen(chain: IKAddonChain) -> None:
    """Upgrade an object when a solver is chosen, because the choice is made in terms of this version."""
    if chain.id_data.session_uid not in _under_way and object_of(chain.id_data).layout < newest():
        chosen = chain.solver
        bring_up(chain.id_data)
        if chain.solver != chosen:
            chain.solver = chosen


def register() -> None:
    """Add the listener."""
    chain_settings.on_solver_changed.append(_solver_chosen)


def unregister() -> None:
    """Remove the listener."""
    chain_settings.on_solver_changed.remove(_solver_chosen)


def is_newer(ob: bpy.types.Object) -> bool:
    """Return whether a newer version of the extension wrote the settings of an armature object."""
    return object_of(ob).layout > newest()
