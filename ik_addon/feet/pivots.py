"""The points at which the hand or foot of a chain touches, stored in the settings of the chain."""

import numpy as np
from bpy.types import PoseBone

from ..anatomy.body import pivots_of
from ..anatomy.figure import Figure
from ..anatomy.sides import is_leg
from ..core.settings import chain_of
from ..rig.plan.chain import chain_bones, end_of
from ..solve.problem import Floats


def is_of_leg(figure: Figure, tip: PoseBone) -> bool:
    """Return whether a chain is on a leg."""
    return is_leg(figure, _row(figure, tip))


def stored(tip: PoseBone) -> Floats:
    """Return the stored heel and toe (2, 3), in the axes of the end bone from its head; zero where none is stored."""
    chain = chain_of(tip)
    return np.array([chain.heel_pivot, chain.toe_pivot], dtype=np.float64)


def found(figure: Figure, tip: PoseBone) -> Floats:
    """Return heel and toe (2, 3) as derived from the bones, in the axes of the end bone from its head."""
    end = end_of(tip)
    if end is None:
        return np.zeros((2, 3))
    points = np.array(pivots_of(figure, _row(figure, tip), figure.names.index(end.name)))
    axes = np.array(end.bone.matrix_local.to_3x3(), dtype=np.float64)
    away = points - figure.heads[figure.names.index(end.name)]
    return np.asarray((away[:, :, None] * axes[None]).sum(axis=1))


def of(figure: Figure, tip: PoseBone) -> Floats:
    """Return the stored heel and toe (2, 3), or those derived from the bones if none are stored."""
    own = stored(tip)
    return own if own.any() else found(figure, tip)


def store(tip: PoseBone, pivots: Floats) -> None:
    """Store heel and toe (2, 3) in the settings of a chain."""
    chain = chain_of(tip)
    chain.heel_pivot, chain.toe_pivot = pivots.tolist()


def _row(figure: Figure, tip: PoseBone) -> list[int]:
    return [figure.names.index(bone.name) for bone in chain_bones(tip)]
