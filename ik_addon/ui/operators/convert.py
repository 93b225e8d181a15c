"""Operators that convert Blender's IK constraints to chains, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import bpy
import numpy as np

from ...bake.restore import SceneSnapshot
from ...bake.sampling import stepped
from ...chains import convert
from ...chains.conversion import converted_bones, sources
from ...chains.current_pose import read_poses, shifts
from ...core.report import percent
from ...core.steps import finished
from ...core.translation.sentences import marked, quoted, say
from ...solve.problem import Floats
from .active import ArmatureOperator

ON_FRAME = marked("On frame {frame}, joints of the chain on '{tip}' are elsewhere, by up to {distance} of its length")
ELSEWHERE = 0.01
"""A joint that is farther than this from where a constraint had it, in lengths of the chain, is reported."""
FRAMES = 12
"""Number of frames of the scene's range on which chains are compared with the constraints that they replace."""


def _poses(context: bpy.types.Context, ob: bpy.types.Object) -> dict[int, Floats]:
    """Return the poses (m, 4, 4) of all bones on frames of the scene's range."""
    scene, before = context.scene, SceneSnapshot(context.view_layer, ob)
    frames = np.unique(np.linspace(scene.frame_start, scene.frame_end, FRAMES).round()).astype(int).tolist()
    found = finished(stepped(context.view_layer, frames, partial(read_poses, ob)))
    before.restore()
    return dict(zip(frames, found, strict=True))


def _differences(
    ob: bpy.types.Object, tips: Sequence[str], before: Mapping[int, Floats], after: Mapping[int, Floats]
) -> Iterator[str]:
    """Yield sentences about chains that pose their joints elsewhere than before on some frames."""
    moved = {frame: shifts(ob, [ob.pose.bones[tip] for tip in tips], before[frame], after[frame]) for frame in before}
    for tip in tips:
        frame = max(moved, key=lambda frame: moved[frame][tip])
        if moved[frame][tip] > ELSEWHERE:
            yield say(ON_FRAME, frame=frame, tip=tip, distance=percent(moved[frame][tip]))


class IK_ADDON_OT_convert_constraints(ArmatureOperator):
    """Convert constraints to chains."""

    bl_idname = "ik_addon.convert_constraints"
    bl_label = "Convert IK Constraints"
    bl_description = (
        "Replace every enabled IK constraint of the armature with a chain, mute the constraint, and turn Live on. "
        "Restore Constraints undoes this"
    )

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require an enabled IK constraint."""
        return "" if any(sources(ob)) else say("'{object}' has no enabled IK constraint", object=ob.name)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Convert the constraints."""
        before = _poses(context, ob)
        done = convert.convert(context, ob)
        elsewhere = _differences(ob, done.tips, before, _poses(context, ob))
        return self.tell(replace(done, warnings=(*done.warnings, *elsewhere)))


class IK_ADDON_OT_restore_constraints(ArmatureOperator):
    """Undo a conversion."""

    bl_idname = "ik_addon.restore_constraints"
    bl_label = "Restore Constraints"
    bl_description = "Remove the chains that Convert IK Constraints added, and enable the constraints again"

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require a converted constraint."""
        return "" if converted_bones(ob) else say("No IK constraint of '{object}' was converted", object=ob.name)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Restore the constraints."""
        bones = convert.restore(context, ob)
        return self.done(say("Restored the IK constraints on {names}", names=quoted(bones)))
