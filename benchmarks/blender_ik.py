"""The same rigs and targets solved by Blender's own IK constraint, with its defaults."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ik_addon.solve.problem import Floats

from .cases import Rig


class BlenderRig:
    """A rig as an armature in the open file, with an IK constraint on each tip and an empty as each target."""

    def __init__(self, rig: Rig) -> None:
        """Build the armature, its limits, constraints and targets."""
        bpy.ops.wm.read_factory_settings(use_empty=True)
        self.rig = rig
        data = bpy.data.armatures.new("rig")
        self.object = bpy.data.objects.new("rig", data)
        bpy.context.scene.collection.objects.link(self.object)
        bpy.context.view_layer.objects.active = self.object
        bpy.ops.object.mode_set(mode="EDIT")
        for i, parent in enumerate(rig.parents):
            edited = data.edit_bones.new(f"b{i:02}")
            edited.head, edited.tail = (0.0, 0.0, 0.0), (0.0, rig.lengths[i], 0.0)
            matrix = Matrix(rig.frames[i].tolist()).to_4x4()
            matrix.translation = Vector(rig.heads[i])
            edited.matrix = matrix
            if parent >= 0:
                edited.parent = data.edit_bones[f"b{parent:02}"]
        bpy.ops.object.mode_set(mode="OBJECT")
        self.bones = [self.object.pose.bones[f"b{i:02}"] for i in range(rig.bones)]
        for bone, ranges in zip(self.bones, rig.ranges, strict=True):
            bone.rotation_mode = "QUATERNION"
            for axis, (low, high) in zip("xyz", ranges, strict=True):
                if low == high == 0.0:
                    setattr(bone, f"lock_ik_{axis}", True)
                elif np.isfinite(low):
                    setattr(bone, f"use_ik_limit_{axis}", True)
                    setattr(bone, f"ik_min_{axis}", low)
                    setattr(bone, f"ik_max_{axis}", high)
        self.targets = []
        for tip in rig.tips:
            target = bpy.data.objects.new("target", None)
            bpy.context.scene.collection.objects.link(target)
            self.bones[tip].constraints.new("IK").target = target
            self.targets.append(target)

    def solve(self, turns: Floats, targets: Floats) -> tuple[Floats, Floats]:
        """Return the errors (B, E) and the solved frames (B, n, 3, 3).

        Args:
            turns: (B, n, 4) joint rotations to start from.
            targets: (B, E, 3) where the tips' tails should be.
        """
        errors = np.empty(targets.shape[:2])
        frames = np.empty((len(targets), self.rig.bones, 3, 3))
        layer = bpy.context.view_layer
        for i, wanted in enumerate(targets):
            for bone, turn in zip(self.bones, turns[i], strict=True):
                bone.rotation_quaternion = turn
            for target, place in zip(self.targets, wanted, strict=True):
                target.location = place
            layer.update()
            for j, bone in enumerate(self.bones):
                frames[i, j] = np.array(bone.matrix)[:3, :3]
            for e, tip in enumerate(self.rig.tips):
                errors[i, e] = (self.bones[tip].tail - Vector(wanted[e])).length
        return errors, frames
