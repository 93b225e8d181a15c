"""Drag the target or pole of a chain: the chain follows, and cancelling restores everything."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

import bpy
import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Matrix, Quaternion, Vector

from ..bake.scene import PoseSnapshot
from ..core.channels import FIELDS, rotation_field, turned, with_rotation
from ..core.goals import Goal
from ..core.names import chain_name
from ..core.settings import chain_of, goal_of, is_tip, object_of
from ..core.skeleton import orthonormal
from ..core.translation.sentences import UserError, say
from ..core.untyped import Struct, Value
from ..live import reports, solving
from ..rig.plan.chain import check
from .autokey import auto_key, left_out
from .edit_range import HERE, EditRange
from .movable import locked, why_lacking


class Drag:
    """A drag of a chain's target or pole."""

    turns_in_place = False

    def __init__(
        self, context: Context, tip: PoseBone, role: str = "target", *, turns: bool = False, reach: EditRange = HERE
    ) -> None:
        """Start the drag.

        Args:
            context: gives the view layer.
            tip: the tip bone of the chain.
            role: the goal to move, "target" or "pole".
            turns: the goal will only be turned.
            reach: how many frames around the current one the drag reaches.

        Raises:
            UserError: the chain can't be solved, or its goal is missing or can't be moved.
        """
        self.ob: Object = tip.id_data
        self.tip, self.reach = tip.name, reach
        context.view_layer.update()
        check(self.ob, tip, context.view_layer)
        goal, bone = goal_of(chain_of(tip), role)
        if goal is None:
            raise UserError(why_lacking(tip, role))
        self.handle = Handle(Goal(goal, bone, turns))
        self.goal, self.world = self.handle.goal, self.handle.world
        self._mirrored = _Mirrored.of(tip, role, self.handle, turns=turns)
        self._tips = [self.tip, *(own.tip for own in self._mirrored)]
        self._handles = [self.handle, *(own.handle for own in self._mirrored)]
        self._before, self._reports = PoseSnapshot(self.ob), {tip: reports.get(self.ob, tip) for tip in self._tips}

    def move(self, context: Context, offset: Vector, turn: Quaternion | None = None) -> reports.Report | None:
        """Move the goal by an offset from its start, turn it by a rotation, both in world space, and solve.

        Within `registry.hurried`, a large body may return its first attempt; call `settle` afterwards.
        """
        self.handle.move(offset, turn)
        for own in self._mirrored:
            own.move(offset, turn)
        self._solve(context)
        return reports.get(self.ob, self.tip)

    def settle(self, context: Context) -> None:
        """Solve to full accuracy, which gives the pose that a frame change would give."""
        for handle in self._handles:
            handle.owner.id_data.update_tag(refresh={"OBJECT"})
        self._solve(context)

    def _solve(self, context: Context) -> None:
        context.view_layer.update()  # solves if Live is on
        if not object_of(self.ob).live:
            solving.solve_now(self.ob, context.evaluated_depsgraph_get(), self._tips)
            context.view_layer.update()

    @property
    def done(self) -> str:
        """The report at the end of the drag."""
        report = reports.get(self.ob, self.tip)
        return "" if report is None else f"'{chain_name(self.ob.pose.bones[self.tip])}': {report.message}"

    def finish(self, context: Context) -> list[str]:
        """End the drag, and key the goal if auto keying is on.

        Returns:
            Sentences about problems with the chain.

        Raises:
            UserError: the keys in the range can't be written.
        """
        with ExitStack() as undo:
            moved = [replace(handle.goal, turns=handle.rotation_field in handle.moved) for handle in self._handles]
            for spread in self.reach.spreads(context.scene, dict(enumerate(moved))).values():
                spread.put(undo)
            undo.pop_all()
        for handle in self._handles:
            auto_key(context, handle.owner, handle.moved)
        report = reports.get(self.ob, self.tip)
        if report is None:
            return [say("The target was moved, but not solved")]
        unkeyed = left_out(context, [handle.owner for handle in self._handles])
        return [*([report.message] if report.failed else []), *unkeyed]

    def cancel(self, context: Context) -> None:
        """Restore everything exactly."""
        for handle in self._handles:
            handle.put_back()
        context.view_layer.update()
        self._before.put_back()
        for tip, report in self._reports.items():
            reports.put(self.ob, tip, report)
        context.view_layer.update()


@dataclass(frozen=True)
class _Mirrored:
    """The goal of the chain on the other side, which X-Axis Mirror takes along."""

    tip: str
    handle: Handle
    image: Handle
    """The goal that the user drags."""
    world: Matrix
    """World matrix of the armature object."""
    is_relative: bool
    """Whether the motion is mirrored; if not, the place is."""

    @classmethod
    def of(cls, tip: PoseBone, role: str, image: Handle, *, turns: bool) -> list[_Mirrored]:
        """Take hold of it; empty if X-Axis Mirror is off, or if there is none that can be moved."""
        ob = tip.id_data
        other = ob.pose.bones.get(bpy.utils.flip_name(tip.name)) if ob.pose.use_mirror_x and ob.mode == "POSE" else None
        if other is None or other == tip or not is_tip(other) or not chain_of(other).enabled:
            return []
        goal, bone = goal_of(chain_of(other), role)
        with suppress(UserError):
            if goal is not None and (goal, bone) != goal_of(chain_of(tip), role):
                handle = Handle(Goal(goal, bone, turns))
                return [cls(other.name, handle, image, ob.matrix_world.copy(), turns or ob.pose.use_mirror_relative)]
        return []

    def move(self, offset: Vector, turn: Quaternion | None) -> None:
        """Follow a move of the image, as in `Handle.move`."""
        across = Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0))
        mirror = self.world @ across @ self.world.inverted_safe()
        own = mirror.to_3x3() @ offset
        if not self.is_relative:
            own = mirror @ (self.image.world.translation + offset) - self.handle.world.translation
        if turn is not None:
            frame = self.world.to_quaternion()
            inner = frame.inverted() @ turn @ frame
            turn = frame @ Quaternion((inner.w, inner.x, -inner.y, -inner.z)) @ frame.inverted()
        self.handle.move(own, turn)


class Handle:
    """The object or pose bone behind a goal, with its state at the start of a drag."""

    def __init__(self, goal: Goal) -> None:
        """Take hold of a target or pole in an updated view layer, to turn it if it `turns`, else to move it.

        Raises:
            UserError: the goal can't be moved, or turned.
        """
        goal.check_movable()
        self.goal = goal
        self.owner: Struct = goal.holder
        if all(self.owner.lock_rotation if goal.turns else self.owner.lock_location):
            reasons = {
                True: "The rotation of '{owner}' is locked. Unlock it in its Transform panel",
                False: "The location of '{owner}' is locked. Unlock it in its Transform panel",
            }
            raise UserError(reasons[goal.turns], owner=goal.name)
        self.rotation_field = rotation_field(self.owner.rotation_mode)
        self._whole, self._start = replace(goal, turns=True), goal.row()
        """What is set, and its channels (17,) at the start."""
        self._turned = turned(getattr(self.owner, self.rotation_field), self.owner.rotation_mode)
        self.world = goal.ob.matrix_world.copy()
        """World matrix of the goal at the start."""
        linear = Matrix.Identity(3)  # from the channel of the location to the position in world space
        if goal.is_bone:
            self.world = goal.ob.matrix_world @ self.owner.matrix
            linear = goal.ob.matrix_world.to_3x3() @ _linear_of_bone(self.owner)
        elif goal.ob.parent is not None or goal.ob.constraints:
            linear = (self.world @ goal.ob.matrix_basis.inverted_safe()).to_3x3()
        if abs(linear.determinant()) < 1e-30:
            raise UserError(
                "'{goal}' is attached to something that is scaled to zero. Reset its scale", goal=goal.ob.name
            )
        self._to_channel = linear.inverted()
        mirrored = np.where(np.array(self.owner.scale) < 0.0, -1.0, 1.0)
        frame = Matrix(orthonormal(np.array(self.world.to_3x3()) * mirrored).tolist())
        self._frame = frame @ self._turned.inverted()
        """Matrix from the space of the rotation channel to world space, without scale, (3, 3)."""

    @property
    def moved(self) -> list[str]:
        """The channels that have changed since the start."""
        changed = self.goal.row() != self._start
        return [field for field in self._whole.fields if changed[FIELDS[field]].any()]

    def move(self, offset: Vector, turn: Quaternion | None = None) -> None:
        """Move by an offset from the start, and turn in place; locked channels stay.

        Args:
            offset: translation in world space.
            turn: rotation in world space; None: keep the initial rotation.
        """
        row, columns = self._start.copy(), FIELDS[self.rotation_field]
        row[FIELDS["location"]] += np.array(self._to_channel @ offset)
        if turn is not None:
            own = self._frame.inverted() @ turn.to_matrix() @ self._frame @ self._turned
            row[columns] = self.goal.row()[columns]
            row = with_rotation(row[None], np.array(own)[None], np.array([self.owner.rotation_mode]))[0]
        self._whole.set_row(locked(self.goal, self._start, row))

    def put_back(self) -> None:
        """Restore the channels exactly as they were at the start."""
        self._whole.set_row(self._start)


def _linear_of_bone(bone: PoseBone) -> Matrix:
    """Return the linear part (3, 3) of the map from a pose bone's location to its position in armature space."""
    above: dict[str, Value] = {}
    if bone.parent is not None:
        above = {"parent_matrix": bone.parent.matrix, "parent_matrix_local": bone.parent.bone.matrix_local}
    places = [
        bone.bone.convert_local_to_pose(Matrix.Translation(step), bone.bone.matrix_local, **above).translation
        for step in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    return Matrix([(place - places[0]).to_tuple() for place in places[1:]]).transposed()
