"""Read what determines a frame from the evaluated copies of objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import bpy
import numpy as np

from ...data.settings import chain_of
from ...pose import channels
from ...pose.channels import FIELDS, WIDTH, Row
from ...solve.problem import Ints
from ..plan.inputs import Inputs, Numbers
from ..plan.reference import Reference
from ..plan.watch import NUMBERS

MANY = 3
"""From this number of objects on, matrices of all objects of a depsgraph are read at once."""
CROWD = 30
"""They are read one by one, however, if there are more than this many objects for each that is needed."""


class EvaluatedObjects:
    """The evaluated copies of o objects in viewports, to be kept as long as relations between objects stay the same."""

    def __init__(self, references: Sequence[Reference]) -> None:
        """Refer to the objects."""
        self._uids = [reference.uid for reference in references]
        self._rows: dict[int, tuple[int, Ints] | None] = {}
        """By address of a depsgraph the number of its objects and the indices (o,) of ours, unless it has too many."""

    def matrices(self, depsgraph: bpy.types.Depsgraph, name: str) -> Numbers | None:
        """Return the matrices (o, 4, 4) of this name on the current frame; None if reading each by itself is better."""
        if len(self._uids) < MANY or depsgraph.mode != "VIEWPORT":
            return None
        # The order of evaluated objects changes only with their relations.
        address = depsgraph.as_pointer()
        if address not in self._rows:
            self._rows[address] = self._rows_in(depsgraph.objects)
        found = self._rows[address]
        if found is None:
            return None
        count, rows = found
        columns = np.empty(16 * count, dtype=np.float32)
        depsgraph.objects.foreach_get(name, columns)
        return columns.reshape(count, 4, 4)[rows].swapaxes(1, 2)

    def _rows_in(self, objects: bpy.types.bpy_prop_collection[bpy.types.Object]) -> tuple[int, Ints] | None:
        count = len(objects)
        if count > CROWD * len(self._uids):
            return None
        place = {ob.original.session_uid: row for row, ob in enumerate(objects)}
        if not place.keys() >= set(self._uids):
            return None
        return count, np.array([place[uid] for uid in self._uids], dtype=np.int64)


def numbers_now(
    inputs: Inputs,
    depsgraph: bpy.types.Depsgraph,
    fk: Row | None = None,
    *,
    objects: EvaluatedObjects | None = None,
    fields: Iterable[str] = FIELDS,
) -> Numbers | None:
    """Return the numbers (1, w) of an evaluated frame; None if one of the objects is gone.

    Args:
        inputs: describes the numbers.
        depsgraph: evaluated at the frame.
        fk: (k, 17) FK channels of the live bones, if the evaluated ones differ from them.
        objects: the objects of the inputs, if they are read frame after frame.
        fields: the channels that are read; the others are 0.
    """
    matrices = None if objects is None else objects.matrices(depsgraph, "matrix_basis")
    needed = range(len(inputs.objects)) if matrices is None else [bones.item for bones in inputs.armatures]
    seen: dict[int, bpy.types.Object] = {}
    for item in needed:
        original = inputs.objects[item].reference.find()
        if original is None:
            return None
        seen[item] = original.evaluated_get(depsgraph)
    numbers = np.empty((1, inputs.width), dtype=np.float32)
    numbers[0, : inputs.rows.start] = _matrices(seen.values()) if matrices is None else matrices.ravel()
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
