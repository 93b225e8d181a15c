"""X-Axis Mirror of an armature: a drag on one side is mirrored to the other side."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from ..core.skeleton import ACROSS, mirrored_rotation, orthonormal
from ..solve.maths.products import times, times_back
from ..solve.problem import Floats


@dataclass(frozen=True)
class Mirror:
    """How a bone follows its mirror image, in armature space."""

    is_relative: bool
    """Whether the bone's motion mirrors that of its image; if not, its pose does."""
    of_image: Floats
    """(3, 3) rest orientation of the image, the bone that the user drags."""
    rest: Floats
    """(3, 3) rest orientation of the bone that follows."""

    @classmethod
    def of(cls, ob: bpy.types.Object, image: str, bone: str) -> Mirror:
        """Read the mirror of two bones, by their names, from an armature object."""
        rests = np.array([np.array(ob.data.bones[name].matrix_local)[:3, :3] for name in (image, bone)])
        of_image, rest = orthonormal(rests)
        return cls(ob.pose.use_mirror_relative, of_image, rest)

    def place(self, target: Floats, image: Floats, own: Floats) -> Floats:
        """Return the target (3,) of a joint, given that of its image, and the starts of the image and of the joint."""
        if self.is_relative:
            return np.asarray(own + ACROSS * (target - image))
        return np.asarray(ACROSS * target)

    def orientation(self, target: Floats, image: Floats, own: Floats) -> Floats:
        """Return the orientation (3, 3) of a bone, from the same three orientations."""
        if self.is_relative:
            return times(mirrored_rotation(times_back(target, image)), own)
        return times(mirrored_rotation(times_back(target, self.of_image)), self.rest)
