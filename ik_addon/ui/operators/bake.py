"""Operators that bake chains to keyframes, or to a skeleton of deform bones alone."""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Object

from ...bake import bake_report, bake_stepwise, chosen_tips, frames_between, skeleton
from ...core.translation.sentences import marked, say
from ...feet import ground_object
from .active import ArmatureOperator, ChainedOperator, Internal, active_chain, armature
from .progress import FrameRangeOperator, Steps

CHAINS = (
    ("ALL", "All Chains", "All enabled chains of the armature"),
    ("SELECTED", "Selected Bones", "The chains that a selected bone belongs to"),
    ("ACTIVE", "Active Bone", "The chain that the active bone belongs to"),
)


class IK_ADDON_OT_bake(FrameRangeOperator, ChainedOperator):
    """Write the solved pose to keyframes and disable the chains, so that it plays without the add-on."""

    bl_label = "Bake IK"

    chains: EnumProperty(name="Chains", description="The chains to bake", items=CHAINS, default="ALL")
    step: IntProperty(
        name="Step",
        description="Frame interval between keys (the last frame is always keyed)",
        default=1,
        min=1,
        soft_max=10,
    )
    new_action: BoolProperty(
        name="New Action", description="Key into a copy of the current action and leave the original unchanged"
    )
    smooth: BoolProperty(
        name="Smooth",
        description="Where the solution jumps from one frame to the next, use other solutions that reach the targets "
        "just as well and turn less",
    )
    reduce_keys: BoolProperty(
        name="Reduce Keys",
        description="Keep as few keys as possible with all joints within Max Distance of the full bake",
    )
    max_distance: FloatProperty(
        name="Max Distance",
        description="Maximum distance of joints from their places in the full bake",
        default=0.001,
        min=1e-6,
        soft_max=0.1,
        precision=4,
        subtype="DISTANCE",
        unit="LENGTH",
    )

    first, own = ("chains",), ("step", "new_action", "smooth")
    confirm = marked("Bake")
    doing = marked("Baking IK")
    cancelled = marked("Bake cancelled. Nothing was changed")

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Open the dialog with the options."""
        if not self.properties.is_property_set("max_distance"):
            self.max_distance = 0.001 / context.scene.unit_settings.scale_length
        self.frame_range = self.frame_range  # mark as set: `ends` must use the range that the dialog shows
        return super().invoke(context, event)

    def draw(self, context: Context) -> None:
        """Draw the options."""
        super().draw(context)
        row = self.layout.row(heading="Reduce Keys")
        row.prop(self, "reduce_keys", text="")
        distance = row.row()
        distance.active = self.reduce_keys
        distance.prop(self, "max_distance", text="")

    def ends(self, context: Context) -> tuple[int, int]:
        """Return the first and last frame; a script that sets frames but no range gets its own frames."""
        names_frames = any(map(self.properties.is_property_set, ("frame_start", "frame_end")))
        if names_frames and not self.properties.is_property_set("frame_range"):
            return self.frame_start, self.frame_end
        return super().ends(context)

    def steps(self, context: Context, ob: Object) -> Steps:
        """Bake, and report it in one line; the panel shows the whole report."""
        report = yield from bake_stepwise(
            context,
            ob,
            chosen_tips(ob, self.chains, active_chain(context)),
            frames_between(*self.ends(context), self.step),
            new_action=self.new_action,
            smooth=self.smooth,
            reduce=self.max_distance if self.reduce_keys else 0.0,
            floor=ground_object.planted_on(context.view_layer, ob),
        )
        return self.done(report.summary, warns=not report.plays_alike)


class IK_ADDON_OT_bake_skeleton(FrameRangeOperator):
    """Make a new armature of only the deform bones and key it to match this one, for game engines: ready for
    Blender's glTF and FBX exporters. This armature stays as it is.
    """

    bl_label = "Bake to Skeleton"

    only_deform: BoolProperty(
        name="Only Deform Bones",
        description="Leave out bones that deform no mesh",
        default=skeleton.Options.only_deform,
    )
    meshes: BoolProperty(
        name="Meshes",
        description="Copy the meshes that this armature deforms; the copies follow the new armature",
        default=skeleton.Options.meshes,
    )
    use_root: BoolProperty(
        name="Root Motion",
        description="Move a bone along the ground with the hips, so that engines can move the character",
    )
    root: StringProperty(
        name="Root", description="The bone that gets the motion; added if no bone has this name", default="root"
    )
    root_height: BoolProperty(name="Up and Down", description="The root also moves up and down with the hips")
    root_turn: BoolProperty(name="Turn", description="The root also turns about the vertical with the hips")

    own = ("only_deform", "meshes", "use_root")
    confirm = marked("Bake")
    doing = marked("Baking to a skeleton")
    cancelled = marked("Bake cancelled. Nothing was changed")

    def draw(self, context: Context) -> None:
        """Draw the options."""
        super().draw(context)
        if self.use_root:
            column = self.layout.column(align=True)
            column.prop_search(self, "root", armature(context).data, "bones", results_are_suggestions=True)
            column.prop(self, "root_height")
            column.prop(self, "root_turn")

    def steps(self, context: Context, ob: Object) -> Steps:
        """Make and key the skeleton, and select it and its meshes for export."""
        root = skeleton.RootMotion(self.root or "root", self.root_height, self.root_turn) if self.use_root else None
        options = skeleton.Options(self.only_deform, root, self.meshes)
        result = yield from skeleton.make_stepwise(context, ob, self.frames(context), options)
        skeleton.select(bpy.context, [result.ob, *result.meshes])
        made, *remarks = result.sentences()
        return self.done(say("{done}, which is selected for export", done=made), remarks)


class IK_ADDON_OT_report_close(Internal, ArmatureOperator):
    """Close the report on the last bake of this armature."""

    bl_label = "Close Report"

    def perform_on(self, _context: Context, ob: Object) -> set[str]:
        """Discard the report."""
        bake_report.forget(ob)
        return {"FINISHED"}
