"""What carries a target or a pole, with a location and a rotation that can be set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np
from mathutils import Euler, Matrix, Quaternion, Vector

from ..pose.channels import rotation_field
from ..pose.skeleton import orthonormal
from ..rig.plan.chain import ChainError


class Handle:
    """What carries a goal, an object or a pose bone, as it was when it was taken hold of."""

    def __init__(self, goal: bpy.types.Object, bone: str, *, turns: bool = False) -> None:
        """Take hold of a target or a pole.

        Args:
            goal: the object, evaluated.
            bone: name of its bone whose head is the goal; empty: the object itself.
            turns: it will only be turned.

        Raises:
            ChainError: it can't be moved, or turned.
        """
        if not goal.is_editable:
            raise ChainError("'{goal}' is linked from another file and can't be moved", goal=goal.name)
        pose_bone = goal.pose.bones.get(bone) if bone and goal.type == "ARMATURE" else None
        if pose_bone is not None and pose_bone.bone.use_connect and pose_bone.parent is not None:
            raise ChainError("Bone '{bone}' is connected to its parent and can't be moved by itself", bone=bone)
        self.owner: Any = goal if pose_bone is None else pose_bone
        if turns and all(self.owner.lock_rotation):
            raise ChainError(
                "The rotation of '{owner}' is locked; unlock it in its Transform panel", owner=self.owner.name
            )
        if not turns and all(self.owner.lock_location):
            raise ChainError(
                "The location of '{owner}' is locked; unlock it in its Transform panel", owner=self.owner.name
            )
        self.rotation_field = rotation_field(self.owner.rotation_mode)
        self._location: Any = self.owner.location.copy()
        self._rotation = tuple(getattr(self.owner, self.rotation_field))
        self._turned = _rotation_of(self.owner)
        self.world = goal.matrix_world.copy()
        """World matrix."""
        linear = _linear_of_object(goal)
        if pose_bone is not None:
            self.world = goal.matrix_world @ pose_bone.matrix
            linear = goal.matrix_world.to_3x3() @ _linear_of_bone(pose_bone)
        if abs(linear.determinant()) < 1e-30:
            raise ChainError("'{goal}' is attached to something that is scaled to zero", goal=goal.name)
        self._to_channel = linear.inverted()
        mirrored = np.where(np.array(self.owner.scale) < 0.0, -1.0, 1.0)
        frame = Matrix(orthonormal(np.array(self.world.to_3x3()) * mirrored).tolist())
        self._frame = frame @ self._turned.to_matrix().inverted()
        """From the space of the rotation channel to world space, without scale, (3, 3)."""

    @property
    def moved(self) -> list[str]:
        """The channels that differ from those that were taken hold of."""
        before = {"location": tuple(self._location), self.rotation_field: self._rotation}
        return [field for field, values in before.items() if tuple(getattr(self.owner, field)) != values]

    def move(self, offset: Vector, turn: Quaternion | None = None) -> None:
        """Go to where it was plus an offset, turned by a rotation about itself; locked channels stay.

        Args:
            offset: in world space.
            turn: in world space; None: the rotation is that which it had.
        """
        wanted = self._location + self._to_channel @ offset
        for i, locked in enumerate(self.owner.lock_location):
            if locked:
                wanted[i] = self._location[i]
        self.owner.location = wanted
        if turn is None:
            setattr(self.owner, self.rotation_field, self._rotation)
        else:
            own = (self._frame.inverted() @ turn.to_matrix() @ self._frame).to_quaternion()
            self._turn(own @ self._turned)

    def put_back(self) -> None:
        """Restore exactly what was there when it was taken hold of."""
        self.owner.location = self._location
        setattr(self.owner, self.rotation_field, self._rotation)

    def _turn(self, wanted: Quaternion) -> None:
        owner = self.owner
        if self.rotation_field == "rotation_euler":
            angles = wanted.to_euler(owner.rotation_mode, owner.rotation_euler)
            owner.rotation_euler = self._with_locks(angles, self._rotation)
            return
        if any(owner.lock_rotation):
            # Blender's transform locks quaternions as Euler angles, too.
            before = self._turned.to_euler("XYZ")
            wanted = self._with_locks(wanted.to_euler("XYZ", before), before[:]).to_quaternion()
        if self.rotation_field == "rotation_quaternion":
            wanted.make_compatible(owner.rotation_quaternion)
            owner.rotation_quaternion = wanted
        else:
            axis, angle = wanted.to_axis_angle()
            owner.rotation_axis_angle = (angle, axis.x, axis.y, axis.z)

    def _with_locks(self, angles: Euler, before: Sequence[float]) -> Euler:
        for i, locked in enumerate(self.owner.lock_rotation):
            if locked:
                angles[i] = before[i]
        return angles


def _rotation_of(owner: Any) -> Quaternion:
    """The rotation channel of an object or a bone, whatever its mode."""
    if owner.rotation_mode == "QUATERNION":
        return owner.rotation_quaternion.normalized()
    if owner.rotation_mode == "AXIS_ANGLE":
        angle, *axis = owner.rotation_axis_angle
        return Quaternion(axis, angle)
    return owner.rotation_euler.to_quaternion()


def _linear_of_object(ob: bpy.types.Object) -> Matrix:
    """How an object's location turns into its world position, without the constant part, (3, 3)."""
    if ob.parent is None and not ob.constraints:
        return Matrix.Identity(3)
    return (ob.matrix_world @ ob.matrix_basis.inverted_safe()).to_3x3()


def _linear_of_bone(bone: bpy.types.PoseBone) -> Matrix:
    """How a pose bone's location turns into its position in armature space, without the constant part, (3, 3)."""
    above: dict[str, Any] = {}
    if bone.parent is not None:
        above = {"parent_matrix": bone.parent.matrix, "parent_matrix_local": bone.parent.bone.matrix_local}
    places = [
        bone.bone.convert_local_to_pose(Matrix.Translation(step), bone.bone.matrix_local, **above).translation
        for step in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    return Matrix([(place - places[0]).to_tuple() for place in places[1:]]).transposed()
