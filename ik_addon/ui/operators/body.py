"""Whole bodies: the operator Pose Body, the tool of that name, and pins."""

from collections.abc import Iterator

from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatVectorProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Object, PropertyGroup, SpaceView3D
from mathutils import Vector

from ...core import compat
from ...core.goals import named
from ...core.settings import overlay_of
from ...core.translation.sentences import UserError, marked, say
from ...core.untyped import Json, Struct
from ...posing.drag import Ask, BodyDrag, Free
from ...posing.pick import Picked, joint_of, picked, target_bones
from ...posing.pins import FLAGS, extremities, set_pins, stored_pins
from ...rig.plan.followers import follower_in
from ...targets import cursor
from ...targets.edit_range import EditRange
from .active import ArmatureOperator, Internal, active_bone, armature, asked, candidate, given, hidden, operators
from .drag import DragMacro, HoldOperator, RangeOptions, finish, start, take_range
from .progress import show_status

WITHOUT_PINS = (
    (Free.FEET.name, "Feet Stay", "The feet stay in place, and the hips follow"),
    (Free.ROOT.name, "Root Stays", "The root stays, and the bones from there to the moved one turn"),
    (Free.CHAIN.name, "Chain Alone", "Only the connected bones above the moved one turn, as with Auto IK"),
)


class BodyOptions:
    """What holds and what follows, as options of an operator."""

    without_pins: EnumProperty(
        name="Without Pins", description="What holds the body if nothing is pinned", items=WITHOUT_PINS
    )
    length: IntProperty(
        name="Bones",
        description="How many bones above the moved joint turn; if 0, the whole body follows",
        min=0,
        soft_max=32,
    )


class BodyDragOptions(RangeOptions, BodyOptions):
    """The same, and how far a drag reaches."""

    every_frame: asked(
        BoolProperty,
        "Key Every Frame",
        "Key what moves on every frame of the range, so that pins don't slip between keys",
    )

    def ask(self, bone: str, use_tail: bool, pins: dict[str, frozenset[str]] | None = None) -> Ask:
        """Return what to drag with these options."""
        return Ask(bone, use_tail, pins, Free[self.without_pins], self.length, EditRange.of(self))


class IKAddonPinArgument(PropertyGroup):
    """A pin passed by a script; `name` is the bone's name."""

    use_location: asked(BoolProperty, "Location", "The head of the bone stays in place", default=True)
    use_rotation: asked(BoolProperty, "Rotation", "The bone keeps its orientation", default=True)


class IK_ADDON_OT_pose_body(BodyDragOptions, ArmatureOperator):
    """Move a bone to a place; pinned bones hold, and the rest of the body follows within its limits."""

    bl_label = "Pose Body"

    bone: asked(StringProperty, "Bone", "The bone to move; if empty, the active bone")
    use_tail: asked(BoolProperty, "Tail", "Move the tail of the bone instead of its head")
    offset: asked(
        FloatVectorProperty, "Offset", "How far the joint moves from where it is, in world space", subtype="TRANSLATION"
    )
    location: given(
        FloatVectorProperty,
        "Location",
        "Where the joint goes, in world space, instead of by an offset",
        subtype="XYZ_LENGTH",
    )
    pins: given(CollectionProperty, "Pins", "Bones that hold; none: those that are pinned", type=IKAddonPinArgument)

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require an armature that is not linked from another file."""
        return "" if ob.is_editable else say("'{rig}' is linked from another file and can't be posed", rig=ob.name)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Pose the body, and report if the bone falls short of its place."""
        pins = {pin.name: frozenset(flag for flag in FLAGS if getattr(pin, f"use_{flag.lower()}")) for pin in self.pins}
        unknown = next((pin for pin in pins if pin not in ob.pose.bones), None)
        if unknown is not None:
            raise UserError("'{rig}' has no bone '{bone}' to pin", rig=ob.name, bone=unknown)
        drag = BodyDrag(context, ob, self.ask(self.bone or name_of_active(ob), self.use_tail, pins or None))
        is_placed = self.properties.is_property_set("location")
        drag.move(context, Vector(self.location) - drag.start if is_placed else Vector(self.offset))
        return finish(self, context, drag)


def name_of_active(ob: Object) -> str:
    """Return the name of the active bone.

    Raises:
        UserError: no bone is active.
    """
    active = active_bone(ob)
    if active is None:
        raise UserError("No bone is active. Select the bone to move")
    return active.name


# ---- the tool

TOOL = "ik_addon.body"


class IK_ADDON_OT_body_hold(BodyDragOptions, HoldOperator):
    """Grab a bone of the body."""

    bl_label = "Take Hold of a Bone"

    bone: hidden(StringProperty, "Bone", "The bone that is dragged; empty: the active bone")
    use_tail: hidden(BoolProperty, "Tail", "Drag the tail of the bone instead of its head")

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Take hold, unless a rotation is repeated."""
        done = context.window_manager.operators
        if done and done[-1].bl_idname == IK_ADDON_OT_body_move.__name__ and not cursor.is_move(done[-1]):
            # It remembers only the rotation, so repeating it would turn the bone without moving it.
            self.report({"WARNING"}, say("A rotation can't be repeated. Drag the bone again"))
            return {"CANCELLED"}
        return super().perform_on(context, ob)

    def hold(self, context: Context, ob: Object) -> set[str]:
        """Take hold of the joint."""
        cursor.CursorDrag(context, BodyDrag(context, ob, self.ask(self.bone or name_of_active(ob), self.use_tail)))
        return {"FINISHED"}


class IK_ADDON_OT_body_move(DragMacro):
    """Drag a bone with the mouse; pinned bones hold, and the rest of the body follows within its limits."""

    bl_label = "Drag Body"
    hold = IK_ADDON_OT_body_hold


class IK_ADDON_OT_body_grab(Internal, BodyOptions, ArmatureOperator):
    """Drag the bone under the mouse by its nearest joint; the rest of the body follows."""

    bl_label = "Drag Body"

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Select the bone where the mouse was pressed, and let Blender move it."""
        region = context.region
        ob = candidate(context)
        if ob is None or ob.mode != "POSE" or context.area is None or context.area.type != "VIEW_3D":
            return {"PASS_THROUGH"}
        pressed = Vector((event.mouse_prev_press_x - region.x, event.mouse_prev_press_y - region.y))
        grabbed = picked(context, pressed) or _selected(context, pressed)
        if grabbed is None:
            operators.view3d.select_box("INVOKE_DEFAULT", wait_for_input=False)
            return {"INTERFACE"}
        bone = grabbed.bone
        context.view_layer.objects.active = bone.id_data
        compat.select_bone(bone)
        parts: Json = {"TRANSFORM_OT_translate": {"cursor_transform": True, "release_confirm": True}}
        tip = follower_in(bone.id_data, bone.id_data, bone.name)
        if tip is not None:  # a pole moves alone; targets were passed over for the joints that follow them
            parts["IK_ADDON_OT_goal_hold"] = {"rig": bone.id_data.name, "tip": tip.name, "role": "POLE"}
            return start(self, operators.ik_addon.goal_move, **parts)
        options = {"bone": bone.name, "use_tail": grabbed.use_tail}
        parts["IK_ADDON_OT_body_hold"] = {**options, "without_pins": self.without_pins, "length": self.length}
        return start(self, operators.ik_addon.body_move, **parts)


MORE, LESS = frozenset({"WHEELDOWNMOUSE", "PAGE_UP"}), frozenset({"WHEELUPMOUSE", "PAGE_DOWN"})
"""Events that change how many bones follow, or with Shift how many frames, in the directions of Blender's Auto IK."""


def running_holds(context: Context, *macros: str) -> Iterator[Struct]:
    """Yield the settings of the first parts of drags that run in the window, from which their repetition takes them."""
    running = filter(None, context.window.modal_operators)
    yield from (macro.macros[0].properties for macro in running if macro.bl_idname in macros)


class IK_ADDON_OT_drag_wheel(Internal):
    """Let the drag reach more or fewer frames or bones."""

    # Handle the mouse wheel during a drag, which Blender's own transform takes for itself.
    bl_label = "Range"

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Receive every event first from here on."""
        if held_body() is not None:
            show_status(context, draw_status)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: Context, event: Event) -> set[str]:
        """Handle the mouse wheel and pass every other event to Blender."""
        if cursor.current is None:
            self.cancel(context)
            return {"FINISHED", "PASS_THROUGH"}
        drag, more = held_body(), event.type in MORE
        if event.value != "PRESS" or not (more or event.type in LESS):
            return {"PASS_THROUGH"}
        if event.shift:
            scene = overlay_of(context.scene)
            step = max(1, scene.edit_range // 5)
            scene.edit_range += step if more else -step
            cursor.current.drag.reach = EditRange.of_scene(context.scene)
            for hold in running_holds(context, *cursor.MACROS):
                take_range(hold, context.scene)
            for area in context.screen.areas:
                area.tag_redraw()
            return {"RUNNING_MODAL"}
        if drag is None or event.alt:  # with Alt Blender zooms
            return {"PASS_THROUGH"}
        drag.extend(context, 1 if more else -1)
        # The next drag, and a repetition of this one, take it from there.
        tool = context.workspace.tools.from_space_view3d_mode("POSE")
        own = [tool.operator_properties(IK_ADDON_OT_body_grab.bl_idname)] if is_in_hand(context) else []
        for remembered in (*own, *running_holds(context, IK_ADDON_OT_body_move.__name__)):
            remembered.length = drag.extent.length
        return {"RUNNING_MODAL"}

    def cancel(self, context: Context) -> None:
        """Leave the status bar to Blender; it also calls this when the window is closed."""
        show_status(context, None)


class IK_ADDON_OT_body_tool(Internal, ArmatureOperator):
    """Take the tool that drags any bone while the rest of the body follows, or put it away."""

    bl_label = "Pose Body"

    @classmethod
    def why_unavailable(cls, context: Context, _ob: Object) -> str:
        """Return that only a 3D View has the tool."""
        return "" if isinstance(context.space_data, SpaceView3D) else say("Use this in a 3D Viewport")

    def perform_on(self, context: Context, _ob: Object) -> set[str]:
        """Switch the tool."""
        operators.wm.tool_set_by_id(name="builtin.select_box" if is_in_hand(context) else TOOL)
        return {"FINISHED"}


def is_in_hand(context: Context) -> bool:
    """Whether the tool Pose Body is in use."""
    tool = context.workspace.tools.from_space_view3d_mode("POSE")
    return tool is not None and tool.idname == TOOL


def draw_status(header: Struct, context: Context) -> None:
    """Draw the status bar during a drag: what the wheel does, then Blender's keys."""
    header.layout.label(text=say("More or Fewer Bones Follow"), icon=compat.WHEEL_ICON, translate=False)
    reach = say("Shift: Range, {frames} Frames", frames=overlay_of(context.scene).edit_range)
    header.layout.label(text=reach, icon=compat.WHEEL_ICON, translate=False)
    header.layout.template_input_status()


def held_body() -> BodyDrag | None:
    """Return the body drag in progress, or None."""
    held = None if cursor.current is None else cursor.current.drag
    return held if isinstance(held, BodyDrag) else None


def _selected(context: Context, place: Vector) -> Picked | None:
    """Return the bone that Blender selects at a position in the region; custom shapes may be far from their bones.

    Of a target it is the bone that follows it.
    """
    if "FINISHED" not in operators.view3d.select(location=(int(place.x), int(place.y))):
        return None
    ob = armature(context)
    bone = active_bone(ob)
    if bone is None:
        return None
    tip = target_bones([ob]).get(bone)
    return Picked.nearest(context, bone, place) if tip is None else Picked.of(context, *joint_of(tip))


# ---- pins


class IK_ADDON_OT_pin(ArmatureOperator):
    """Pin bones so that they stay while others are dragged, or release them if they are pinned.

    X-Axis Mirror pins the other side as well.
    """

    bl_label = "Pin Bones"

    what: EnumProperty(
        name="What",
        description="What the pins hold",
        items=(
            ("BOTH", "Both", "Location and rotation"),
            ("LOCATION", "Location", "The location of the head"),
            ("ROTATION", "Rotation", "The rotation"),
        ),
    )
    which: asked(
        EnumProperty,
        "Bones",
        "The bones to pin",
        items=(
            ("SELECTED", "Selected", "The selected bones"),
            ("FEET", "Feet", "The feet of the figure"),
            ("HANDS", "Hands", "The hands of the figure"),
        ),
    )

    @classmethod
    def description(cls, _context: Context, properties: Struct) -> str:
        """Return a tooltip that says which bones the button pins."""
        if properties.which == "SELECTED":
            return say(cls.bl_description)
        feet = marked("Pin the feet of the figure where they stand, or release them if they are pinned")
        hands = marked("Pin the hands of the figure where they are, or release them if they are pinned")
        return say(feet if properties.which == "FEET" else hands)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Pin the bones, or release them if all are pinned that way."""
        if self.which == "SELECTED":
            none, active = marked("Select the bones to pin in Pose Mode"), active_bone(ob)
            bones = [bone.name for bone in context.selected_pose_bones or () if bone.id_data == ob]
            bones = bones or ([] if active is None else [active.name])
        else:
            bones, none = extremities(ob, self.which), marked("No such bones found. Select the bones to pin")
        if not bones:
            raise UserError(none)
        wanted = FLAGS if self.what == "BOTH" else frozenset((self.what,))
        stored = stored_pins(ob)
        released = all(stored.get(bone) == wanted for bone in bones)
        set_pins(ob, bones, frozenset() if released else wanted)
        return self.done(say("Released {bones}" if released else "Pinned {bones}", bones=named(bones)))


class IK_ADDON_OT_pin_release(ArmatureOperator):
    """Release all pinned bones of the armature."""

    bl_label = "Release Pins"

    bone: given(StringProperty, "Bone", "The bone to release; empty: all")

    @classmethod
    def description(cls, _context: Context, properties: Struct) -> str:
        """Return a tooltip that names the bone to release."""
        return say("Release '{bone}'", bone=properties.bone) if properties.bone else say(cls.bl_description)

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require a pinned bone."""
        return "" if stored_pins(ob) else say("No bone is pinned")

    def perform_on(self, _context: Context, ob: Object) -> set[str]:
        """Release the bone or all bones."""
        bones = [bone for bone in stored_pins(ob) if self.bone in ("", bone)]
        if not bones:
            raise UserError("'{bone}' is not pinned", bone=self.bone)
        set_pins(ob, bones, ())
        return self.done(say("Released {bones}", bones=named(bones)))
