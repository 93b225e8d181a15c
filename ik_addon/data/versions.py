"""Settings that an older version of the extension wrote are brought up to date when they are seen first.

An armature object with chains says in which layout its settings are (`object.ik_addon.layout`). Files come by opening
and by appending, linking and undoing, so each new object is looked at, whichever way it came. What is linked is left as
it is in its library: whoever reads a setting that has another meaning since asks here what it means.
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
"""The layout from which on FABRIK means FABRIK: until then an even bend was called so."""


def _from_0(ob: bpy.types.Object) -> None:
    """0.1.0 stored no number, and the FK pose of each bone on the bone, also where it is the rest pose."""
    fk_store.compact(ob)


def _from_1(ob: bpy.types.Object) -> None:
    """0.1.0 called an even bend FABRIK, and solved free chains with stiffness as it solved those with limits."""
    for tip in ob.pose.bones:
        if not is_tip(tip):
            continue
        chain = chain_of(tip)
        if chain.solver == Solver.FABRIK.value:
            chain.solver = Solver.EVEN_BEND.value
        if any(getattr(bone, f"ik_stiffness_{axis}") for bone in (tip, *tip.parent_recursive) for axis in "xyz"):
            chain.stiff_as_limited = True


STEPS: Final[list[Callable[[bpy.types.Object], None]]] = [_from_0, _from_1]
"""The step at n brings an armature object from layout n to layout n + 1; what is not there must not disturb it."""
_under_way: Final[set[int]] = set()
"""Objects, by `session_uid`, whose settings are being brought up to date: that sets some of them."""


def newest() -> int:
    """The layout that this version of the extension writes."""
    return len(STEPS)


def bring_up(ob: bpy.types.Object) -> None:
    """Bring the settings of an armature object up to date; those of a newer version, or linked, stay as they are."""
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
    """Bring all armature objects with chains up to date."""
    for ob in bpy.data.objects:
        is_old = ob.type == "ARMATURE" and ob.pose is not None and object_of(ob).layout < newest()
        if is_old and any(map(is_tip, ob.pose.bones)):
            bring_up(ob)


def meant(solver: str, layout: int) -> Solver:
    """Which solver a setting means that was written in a layout."""
    found = Solver(solver)
    return Solver.EVEN_BEND if found is Solver.FABRIK and layout < FABRIK_IS_FABRIK else found


def solver_of(chain: IKAddonChain) -> Solver:
    """Which solver a chain has, whichever version wrote its settings."""
    return meant(chain.solver, object_of(chain.id_data).layout)


def stiffness_is_shared(chain: IKAddonChain) -> bool:
    """Whether stiffness shares out the bend of a chain without limits.

    0.1.0 solved such a chain as one with limits, and what it has posed stays: `stiff_as_limited`.
    """
    return not chain.stiff_as_limited and object_of(chain.id_data).layout >= FABRIK_IS_FABRIK


def _solver_chosen(chain: IKAddonChain) -> None:
    """A solver is chosen in this version, also where the other settings of the object are still older."""
    if chain.id_data.session_uid not in _under_way and object_of(chain.id_data).layout < newest():
        chosen = chain.solver
        bring_up(chain.id_data)
        if chain.solver != chosen:
            chain.solver = chosen


def register() -> None:
    """Follow what is chosen."""
    chain_settings.on_solver_changed.append(_solver_chosen)


def unregister() -> None:
    """No longer."""
    chain_settings.on_solver_changed.remove(_solver_chosen)


def is_newer(ob: bpy.types.Object) -> bool:
    """Whether a newer version of the extension wrote the settings of an armature object."""
    return object_of(ob).layout > newest()
