"""Read what determines a frame from the evaluated copies of objects."""

from __future__ import annotations

from collections.abc import Iterable

import bpy
import numpy as np

from ...data.settings import chain_of
from ...pose import channels
from ...pose.channels import FIELDS, WIDTH, Row
from ..plan.inputs import Inputs, Numbers
from ..plan.watch import NUMBERS


def numbers_now(
    inputs: Inputs,
    depsgraph: bpy.types.Depsgraph,
    fk: Row | None = None,
    *,
    fields: Iterable[str] = FIELDS,
) -> Numbers | None:
    """Return the numbers (1, w) of an evaluated frame; None if one of the objects is gone.

    Args:
        inputs: describes the numbers.
        depsgraph: evaluated at the frame.
        fk: (k, 17) FK channels of the live bones, if the evaluated ones differ from them.
        fields: the channels that are read; the others are 0.
    """
    seen: list[bpy.types.Object] = []
    for placed in inputs.objects:
        original = placed.reference.find()
        if original is None:
            return None
        seen.append(original.evaluated_get(depsgraph))
    numbers = np.empty((1, inputs.width), dtype=np.float32)
    numbers[0, : inputs.rows.start] = _matrices(seen)
    numbers[0, : inputs.rows.start] += 0.0  # turns -0.0 into 0.0
    rows = numbers[0, inputs.rows].reshape(len(inputs.modes), WIDTH)
    start = 0
    for bones in inputs.armatures:
        count = len(seen[bones.item].pose.bones)
        if count != len(bones.skeleton.names):
            return None
        rows[start : start + len(bones.indices)] = channels.read(seen[bones.item], bones.indices, count, fields)
        start += len(bones.indices)
    if fk is not None:
        rows[inputs.live] = fk
    own = seen[inputs.own].pose.bones
    settings = [chain_of(own[tip]) for tip in inputs.tips]
    numbers[0, inputs.rows.stop :] = [getattr(chain, name) for chain in settings for name in NUMBERS]
    return numbers


def _matrices(seen: Iterable[bpy.types.Object]) -> list[float]:
    """Return the elements of the basis matrices of objects, row by row."""
    found: list[float] = []
    for matrix in [ob.matrix_basis for ob in seen]:
        for row in range(4):
            found += matrix[row][:]
    return found
