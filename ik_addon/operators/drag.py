"""Drag Target: the tip of the active chain follows the mouse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from bpy.props import FloatVectorProperty
from bpy_extras import view3d_utils
from mathutils import Matrix, Vector
from mathutils.geometry import intersect_line_line

from ..data import fk_store
from ..data.settings import chain_of, object_of
from ..live import handlers, reports
from ..pose import channels
from ..rig.plan.chain import ChainError, check
from ..setup.autokey import auto_key
from .active import ArmatureOperator, active_chain

KEYS = "Click or Enter: confirm   Esc or right click: cancel   X, Y, Z: along one axis"
AXES = {"X": 0, "Y": 1, "Z": 2}


class Handle:
    """What carries a target, an object or a pose bone, with a location that can be set."""

    def __init__(self, goal: bpy.types.Object, bone: str) -> None:
        """Take hold of a target.

        Args:
            goal: the object.
            bone: name of its bone whose head is the target; empty: the object itself.

        Raises:
            ChainError: it cannot be moved.
        """
        if not goal.is_editable:
            raise ChainError(f"The target '{goal.name}' is linked from another file and can't be moved")
        pose_bone = goal.pose.bones.get(bone) if bone and goal.type == "ARMATURE" else None
        if pose_bone is not None and pose_bone.bone.use_connect and pose_bone.parent is not None:
            raise ChainError(f"The target bone '{bone}' is connected to its parent and can't be moved by itself")
        self.owner: Any = goal if pose_bone is None else pose_bone
        if all(self.owner.lock_location):
            raise ChainError(f"The location of '{self.owner.name}' is locked; unlock it in its Transform panel")
        self.location = self.owner.location.copy()
        self.place = goal.matrix_world.translation.copy()
        """World position."""
        linear = _linear_of_object(goal)
        if pose_bone is not None:
            self.place = goal.matrix_world @ pose_bone.head
            linear = goal.matrix_world.to_3x3() @ _linear_of_bone(pose_bone)
        if abs(linear.determinant()) < 1e-30:
            raise ChainError(f"The target '{goal.name}' hangs on something that is scaled to zero")
        self._to_channel = linear.inverted()

    def move(self, offset: Vector) -> None:
        """Go to where it was plus an offset in world space; locked channels stay."""
        wanted = self.location + self._to_channel @ offset
        for i, locked in enumerate(self.owner.lock_location):
            if locked:
                wanted[i] = self.location[i]
        self.owner.location = wanted


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


@dataclass(frozen=True)
class Before:
    """Everything of an armature that solving changes."""

    rows: Any
    """(bones, 17) channels."""
    bases: fk_store.Stored
    report: reports.Report | None

    @classmethod
    def of(cls, ob: bpy.types.Object, tip: str) -> Before:
        """Note it down."""
        return cls(channels.read(ob, np.arange(len(ob.pose.bones))), fk_store.snapshot(ob), reports.get(ob, tip))

    def restore(self, ob: bpy.types.Object, tip: str) -> None:
        """Put it back."""
        channels.write(ob, np.arange(len(self.rows)), self.rows)
        fk_store.put_back(ob, self.bases)
        reports.put(ob, tip, self.report)


class Drag:
    """The target of a chain on its way."""

    def __init__(self, context: bpy.types.Context, tip: bpy.types.PoseBone) -> None:
        """Begin.

        Raises:
            ChainError: the chain can't be solved, or its target can't be moved.
        """
        chain = chain_of(tip)
        self.ob: bpy.types.Object = tip.id_data
        self.tip = tip.name
        context.view_layer.update()
        check(self.ob, tip, context.view_layer)
        self.handle = Handle(chain.target, chain.target_bone)
        self._before = Before.of(self.ob, self.tip)

    def move(self, context: bpy.types.Context, offset: Vector) -> reports.Report | None:
        """Move the target by an offset in world space from where it was, and solve."""
        self.handle.move(offset)
        context.view_layer.update()  # solves where Live is on
        if not object_of(self.ob).live:
            handlers.solve_now(self.ob, context.evaluated_depsgraph_get(), [self.tip])
            context.view_layer.update()
        return reports.get(self.ob, self.tip)

    def error(self) -> float:
        """World distance from the tip to the target."""
        tip = self.ob.pose.bones[self.tip]
        chain = chain_of(tip)
        target, place = chain.target, chain.target.matrix_world.translation
        if chain.target_bone and target.type == "ARMATURE":
            place = target.matrix_world @ target.pose.bones[chain.target_bone].head
        return float((self.ob.matrix_world @ tip.tail - place).length)

    def cancel(self, context: bpy.types.Context) -> None:
        """Put everything back to the bit."""
        self.handle.owner.location = self.handle.location
        context.view_layer.update()
        self._before.restore(self.ob, self.tip)
        context.view_layer.update()


class View:
    """A viewport with a mouse over it."""

    def __init__(self, context: bpy.types.Context) -> None:
        """Take the viewport under the mouse; from a button of the sidebar, the one beside it."""
        space: Any = context.space_data
        if context.region is not None and context.region.type == "WINDOW":
            self.region, self.data = context.region, context.region_data
            self.has_mouse = True
        else:
            self.has_mouse = False
            self.region = next(region for region in context.area.regions if region.type == "WINDOW")
            self.data = space.region_3d

    def window_place(self, point: Vector) -> tuple[int, int] | None:
        """Window coordinates of a point in world space; None where it is not in sight."""
        place = view3d_utils.location_3d_to_region_2d(self.region, self.data, point)
        if place is None or not (0 <= place.x < self.region.width and 0 <= place.y < self.region.height):
            return None
        return round(place.x) + self.region.x, round(place.y) + self.region.y

    def offset(self, start: Vector, grabbed: tuple[int, int], now: tuple[int, int], axis: int | None) -> Vector:
        """How far a point at `start` (world space) goes when the mouse does.

        Args:
            start: the point, in the plane of the view that the mouse moves in.
            grabbed: window coordinates of the mouse when it took hold of the point.
            now: its window coordinates.
            axis: index of the one axis to move along; None: in the plane of the view.
        """
        begin, end = (Vector((x - self.region.x, y - self.region.y)) for x, y in (grabbed, now))
        plane: Any = view3d_utils.region_2d_to_location_3d
        moved = plane(self.region, self.data, end, start) - plane(self.region, self.data, begin, start)
        if axis is None:
            return moved
        line = Vector([float(i == axis) for i in range(3)])
        place = view3d_utils.location_3d_to_region_2d(self.region, self.data, start + moved)
        if place is None:
            return Vector()
        origin = view3d_utils.region_2d_to_origin_3d(self.region, self.data, place)
        sight = view3d_utils.region_2d_to_vector_3d(self.region, self.data, place)
        nearest = intersect_line_line(start, start + line, origin, origin + sight)
        return Vector() if nearest is None else (nearest[0] - start).project(line)


class IK_ADDON_OT_drag_target(ArmatureOperator):
    """Drag the target of the active chain."""

    bl_idname = "ik_addon.drag_target"
    bl_label = "Drag Target"
    bl_description = "Move the target of the active chain with the mouse; the chain follows, with Live on or off"
    bl_options = {"REGISTER", "UNDO", "BLOCKING"}  # noqa: RUF012 - as Blender wants it

    offset: FloatVectorProperty(
        name="Move", description="How far the target moves, in world space", subtype="TRANSLATION", size=3
    )

    _drag: Drag
    _view: View
    _grabbed: tuple[int, int]
    _axis: int | None = None

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """There must be a chain with a target."""
        tip = active_chain(context)
        if tip is None:
            return "Select a bone of a chain"
        if not chain_of(tip).enabled:
            return f"The chain on '{tip.name}' is switched off; enable it in the panel"
        return "" if chain_of(tip).target else f"The chain on '{tip.name}' has no target; choose one in the panel"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Move the target by `offset` and solve."""
        try:
            drag = Drag(context, active_chain(context))
        except ChainError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return self._finish(context, drag, drag.move(context, Vector(self.offset)))

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Take hold of the target."""
        if context.area is None or context.area.type != "VIEW_3D":
            self.report({"ERROR"}, "Use this in a 3D viewport")
            return {"CANCELLED"}
        try:
            self._drag = Drag(context, active_chain(context))
        except ChainError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self._view = View(context)
        self._grabbed = event.mouse_x, event.mouse_y
        self._axis = None
        place = self._view.window_place(self._drag.handle.place)
        if not self._view.has_mouse and place is not None:
            # From a button the way into the viewport is no part of the drag.
            self._grabbed = place
            context.window.cursor_warp(*place)
        self._follow(context, self._grabbed)
        context.window.cursor_modal_set("SCROLL_XY")
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Follow the mouse until it is confirmed or cancelled."""
        if event.type == "MOUSEMOVE":
            self._follow(context, (event.mouse_x, event.mouse_y))
        elif event.value == "PRESS" and event.type in AXES:
            self._axis = None if self._axis == AXES[event.type] else AXES[event.type]
            self._follow(context, (event.mouse_x, event.mouse_y))
        elif event.value == "PRESS" and event.type in {"LEFTMOUSE", "RET", "NUMPAD_ENTER"}:
            self._stop(context)
            return self._finish(context, self._drag, reports.get(self._drag.ob, self._drag.tip))
        elif event.value == "PRESS" and event.type in {"ESC", "RIGHTMOUSE"}:
            self.cancel(context)
            return {"CANCELLED"}
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Put everything back; Blender calls this, too, when the window is closed."""
        self._stop(context)
        self._drag.cancel(context)

    def _follow(self, context: bpy.types.Context, mouse: tuple[int, int]) -> None:
        self.offset = self._view.offset(self._drag.handle.place, self._grabbed, mouse, self._axis)
        report = self._drag.move(context, Vector(self.offset))
        context.workspace.status_text_set(self._status(context, report))

    def _status(self, context: bpy.types.Context, report: reports.Report | None) -> str:
        system = context.scene.unit_settings.system

        def length(value: float) -> str:
            return bpy.utils.units.to_string(system, "LENGTH", value, precision=4)

        along = "" if self._axis is None else f" along {'XYZ'[self._axis]}"
        said = "Not solved" if report is None else report.message
        moved = "  ".join(f"D{axis} {length(value)}" for axis, value in zip("xyz", self.offset, strict=True))
        return f"{moved}{along}   Error {length(self._drag.error())}   {said}   |   {KEYS}"

    def _stop(self, context: bpy.types.Context) -> None:
        context.window.cursor_modal_restore()
        context.workspace.status_text_set(None)

    def _finish(self, context: bpy.types.Context, drag: Drag, report: reports.Report | None) -> set[str]:
        auto_key(context, drag.handle.owner, ["location"])
        if report is None or report.failed:
            self.report({"WARNING"}, "The target was moved, but not solved" if report is None else report.message)
        else:
            self.report({"INFO"}, f"'{drag.tip}': {report.message}")
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_drag_target,)
