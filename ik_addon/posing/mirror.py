"""X-Axis Mirror of an armature: what is dragged on one side is dragged on the other side, too."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from ..pose.skeleton import orthonormal
from ..solve.maths.products import times, times_back
from ..solve.problem import Floats

SIGNS = np.array([-1.0, 1.0, 1.0])
"""Of the components of a vector that is mirrored across X."""


@dataclass(frozen=True)
class Mirror:
    """How a bone follows its image on the other side, in the space of their armature."""

    is_relative: bool
    """It moves as its image does from where it is, and does not become what the image is."""
    of_image: Floats
    """(3, 3) rest orientation of the bone that a user drags."""
    rest: Floats
    """(3, 3) rest orientation of the bone that follows."""

    @classmethod
    def of(cls, ob: bpy.types.Object, image: str, bone: str) -> Mirror:
        """Read it from an armature object, by the names of both bones."""
        rests = np.array([np.array(ob.data.bones[name].matrix_local)[:3, :3] for name in (image, bone)])
        of_image, rest = orthonormal(rests)
        return cls(ob.pose.use_mirror_relative, of_image, rest)

    def place(self, target: Floats, image: Floats, own: Floats) -> Floats:
        """Where a joint goes (3,), by the target of its image, where the image was and where the joint itself was."""
        if self.is_relative:
            return np.asarray(own + SIGNS * (target - image))
        return np.asarray(SIGNS * target)

    def orientation(self, target: Floats, image: Floats, own: Floats) -> Floats:
        """Which way a bone turns (3, 3), by the same of orientations."""
        if self.is_relative:
            return times(_mirrored(times_back(target, image)), own)
        return times(_mirrored(times_back(target, self.of_image)), self.rest)


def _mirrored(rotation: Floats) -> Floats:
    return np.asarray(rotation * SIGNS * SIGNS[:, None])
