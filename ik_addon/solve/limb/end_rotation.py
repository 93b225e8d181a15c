"""A bone below the end of a chain, such as a hand or a foot, that takes an orientation by its own joint alone."""

import numpy as np

from ..maths.cones import at_limit, cone_of, joint_rotation, nearest_direction, nearest_twist, swing_twist
from ..maths.products import back_times, determinants, times
from ..maths.rotations import matrices, quaternions
from ..problem import Bools, Floats, Limits


def turned(frames: Floats, wanted: Floats, limits: Limits | None) -> tuple[Floats, Bools]:
    """Return the orientations (B, 3, 3) that bones take towards the wanted ones, and which bones (B,) are at a limit.

    A bone within limits takes the nearest allowed orientation, by swing and by twist; a bone that is locked
    altogether keeps its FK rotation. A left-handed bone takes Y and Z as wanted, and X opposite.

    Args:
        frames: (B, 3, 3) FK orientation of the bones, orthonormal, moved along by the bones above.
        wanted: (B, 3, 3) right-handed orientations.
        limits: limits of these bones (n = 1); None: they turn freely.
    """
    with np.errstate(invalid="ignore"):
        side = np.where(determinants(frames) < 0.0, -1.0, 1.0)
    found = wanted.copy()
    found[..., 0] *= side[:, None]
    free = np.zeros(len(frames), dtype=bool)
    if limits is None or not np.isfinite([*limits.cones[0], *limits.twist[0]]).any():
        return found, free
    if not (np.any(limits.cones) or np.any(limits.twist)):
        return frames.copy(), free
    rest = np.broadcast_to(limits.rest, (len(frames), 1, 3, 3))[:, 0]
    at_rest = times(limits.root, rest)
    turn = quaternions(back_times(at_rest, found).transpose(1, 2, 0))
    cone = cone_of(limits.cones, limits.twist)
    swing, twist = swing_twist(turn)
    allowed_swing, allowed_twist = nearest_direction(swing, cone), nearest_twist(twist, cone)
    outside = (allowed_swing != swing).any(axis=0) | (allowed_twist != twist)
    if outside.any():
        clamped = matrices(joint_rotation(allowed_swing, allowed_twist)).transpose(2, 0, 1)
        found[outside] = times(at_rest, clamped)[outside]
    return found, at_limit(allowed_swing, allowed_twist, cone)
