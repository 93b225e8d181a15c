"""What a bake finds in a scene: its chains and frames, checks that they can be baked, and snapshots to be put back."""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

import bpy
import numpy as np
from bpy.types import Object, PoseBone, Scene, ViewLayer

from ..core import channels, compat, fk_store
from ..core.data_paths import below_bone, set_at, value_at
from ..core.names import chain_name
from ..core.settings import chain_of
from ..core.translation.sentences import UserError, say
from ..core.untyped import Struct
from ..live import registry
from ..rig.plan import chain
from ..rig.plan.facts import animated_paths
from ..rig.plan.groups import LOOP_OF_ARMATURES
from ..rig.plan.order import all_needs
from ..rig.plan.plan import Plan, between, in_loops
from ..rig.plan.presence import Presence, Reference

FIRST, LAST = -1_048_574, 1_048_574
"""Blender's range of frames."""


def chosen_tips(ob: Object, which: str, active: PoseBone | None = None) -> list[str]:
    """Return the tip bones of the enabled chains to bake: the ACTIVE one, those of SELECTED bones, or ALL.

    Args:
        ob: the armature object.
        which: one of the above.
        active: tip of the active chain.

    Raises:
        UserError: there are none.
    """
    tips = chain.tips(ob)
    if which == "ACTIVE":
        if active is None:
            no_chain = "The active bone of '{object}' is not part of an IK chain. Make a bone of a chain active"
            raise UserError(no_chain, object=ob.name)
        tips = [active]
    elif which == "SELECTED":
        tips = [tip for tip in tips if any(compat.is_selected(bone) for bone in chain.posed_bones(tip))]
        if not tips:
            none_selected = "No selected bone of '{object}' is part of an IK chain. Select a bone of a chain"
            raise UserError(none_selected, object=ob.name)
    enabled = [tip.name for tip in tips if chain_of(tip).enabled]
    if not tips:
        raise UserError("'{object}' has no IK chain. Add one first", object=ob.name)
    if not enabled:
        raise UserError("The chain on '{tip}' is disabled. Enable it to bake it", tip=chain_name(tips[0]))
    return enabled


def frame_range(scene: Scene, ob: Object, which: str) -> tuple[int, int]:
    """Return the first and last frame of the SCENE, its PREVIEW range, or the ACTION of an armature object.

    Raises:
        UserError: there is no such range.
    """
    if which == "PREVIEW":
        if not scene.use_preview_range:
            raise UserError("The scene has no preview range. Set one, or bake another frame range")
        return scene.frame_preview_start, scene.frame_preview_end
    if which == "ACTION":
        if not len(compat.curves_of(ob)):
            raise UserError("'{object}' has no keys in an action. Bake another frame range", object=ob.name)
        span = np.array(ob.animation_data.action.frame_range) / time_scale(scene)
        return math.floor(span[0]), math.ceil(span[1])
    return scene.frame_start, scene.frame_end


def frames_between(first: int, last: int, step: int = 1) -> list[int]:
    """Return every `step`-th frame, and always the last one, because keys are replaced up to the end of the range.

    Raises:
        UserError: there are none, or Blender doesn't have them.
    """
    if step < 1:
        raise UserError("The step is {step}, but must be 1 frame or more", step=step)
    for frame in (first, last):
        if not FIRST <= frame <= LAST:
            beyond = "There is no frame {frame}. Choose frames from {first} to {last}"
            raise UserError(beyond, frame=frame, first=FIRST, last=LAST)
    if last < first:
        raise UserError("The frame range is empty: it starts at {first} and ends at {last}", first=first, last=last)
    frames = list(range(first, last + 1, step))
    return frames if frames[-1] == last else [*frames, last]


def time_scale(scene: Scene) -> float:
    """Return how many frames of an action pass in one frame of a scene, whose time may be remapped."""
    return scene.render.frame_map_old / scene.render.frame_map_new


def check_armature(ob: Object, view_layer: ViewLayer) -> None:
    """Raise `UserError` if an armature object shows no pose that could be baked."""
    if ob.mode == "EDIT":
        raise UserError("'{object}' is in Edit Mode. Exit Edit Mode to bake", object=ob.name)
    if not Presence(view_layer).evaluates(ob):
        unseen = "'{object}' is excluded from this view layer or disabled in viewports. Enable it to bake"
        raise UserError(unseen, object=ob.name)
    if ob.data.pose_position == "REST":
        raise UserError("'{object}' is in Rest Position. Switch it to Pose Position", object=ob.name)


def check_order(ob: Object, plan: Plan, tips: Collection[str], others: Mapping[int, Plan]) -> None:
    """Raise `UserError` if other armatures would have to be solved between the chains that are baked, or elsewhere.

    Args:
        ob: the armature object.
        plan: its plan on some frame.
        tips: tip bones of the chains that are baked.
        others: the plans of other live armatures on that frame, by `session_uid`.
    """
    if others.keys().isdisjoint(plan.leaders):
        return
    plans = {ob.session_uid: plan, **others}
    rigs = {other.session_uid: other for other in bpy.data.objects if other.session_uid in plans}
    needs = {uid: other.leaders & plans.keys() for uid, other in plans.items()}
    for uid in all_needs(ob.session_uid, needs) - {ob.session_uid}:
        if plans[uid].is_elsewhere:
            elsewhere = (
                "'{object}' follows '{other}', whose targets are missing in this view layer. "
                "Bake in a view layer that has them"
            )
            raise UserError(elsewhere, object=ob.name, other=rigs[uid].name)
    circle = in_loops(plans)
    if ob.session_uid in circle:
        raise UserError(LOOP_OF_ARMATURES, names=" and ".join(f"'{rigs[uid].name}'" for uid in rigs if uid in circle))
    for uid, tip in between(plans, ob.session_uid, tips):
        name = chain_name(rigs[uid].pose.bones[tip])
        first = say("the chain on '{tip}' of '{other}'", tip=name, other=rigs[uid].name)
        depends = "'{object}' depends on {first}, which depends on another chain of '{object}'. Bake {first} first"
        raise UserError(depends, object=ob.name, first=first)


def other_plans(view_layer: ViewLayer, ob: Object) -> dict[int, Plan]:
    """Return the plans of all other live armatures on the current frame, by `session_uid`."""
    others = (other for other in registry.live_armatures(view_layer.id_data) if other != ob)
    return {other.session_uid: Plan.of(other, view_layer.depsgraph) for other in others}


def baked_tips(ob: Object, plan: Plan, tips: Collection[str]) -> list[str]:
    """Return the tip bones of the chains that are keyed, in the order of the plan.

    A chain that depends on animated settings may be solvable on other frames, even if it isn't on the current one.

    Raises:
        UserError: a chain is not in the plan or can never be solved, or its bones cannot be keyed.
    """
    for tip in tips:
        if tip in plan.faults and not plan.watch:
            name = chain_name(ob.pose.bones[tip])
            raise UserError("The chain on '{tip}' can't be baked. {fault}", tip=name, fault=plan.faults[tip])
    baked = [tip for tip in plan.paths if tip in tips]
    names = {plan.skeleton.names[bone] for tip in baked for bone in plan.paths[tip]}
    for path in animated_paths(ob):
        name, rest = below_bone(path)
        if rest == "rotation_mode" and name in names:
            # Since 4.4 Blender applies F-curves in any order, and setting the mode converts rotations.
            raise UserError(
                "The rotation mode of bone '{name}' is animated, "
                "which makes Blender play rotation keys unreliably. Delete the animation of the mode to bake",
                name=name,
            )
    unknown = set(tips).difference(baked)
    if unknown or not baked:
        raise UserError("There is no enabled IK chain on '{bone}'. Add or enable one", bone=min(unknown, default=""))
    return baked


# ---- snapshots of what a bake touches besides the keys, so that all of it can be put back


def evaluated_for(scene: Scene) -> set[Struct]:
    """Return the data-blocks that are evaluated in any view layer of a scene."""
    found: set[Struct] = set()
    kinds = [kind.identifier for kind in bpy.data.bl_rna.properties if kind.type == "COLLECTION"]
    for depsgraph in filter(None, (layer.depsgraph for layer in scene.view_layers)):
        # These lack data-blocks outside the view layer that something in it needs, but include node trees that are
        # part of other data-blocks.
        found.update(evaluated.original for evaluated in depsgraph.ids)
        for known in itertools.chain.from_iterable(getattr(bpy.data, kind) for kind in kinds):
            if known.evaluated_get(depsgraph).is_evaluated:
                found.add(known)
    return found


class Edits:
    """Unkeyed edits of animated properties in a scene, which going to another frame and back would drop.

    Leaves out the bone channels of armatures that the bake writes or that are solved live.
    """

    def __init__(self, scene: Scene, posed: Collection[Object]) -> None:
        """Read everything that is evaluated, except the channels of the `posed` armatures."""
        self._values = [
            (owner, path, value_at(owner, path))
            for owner in evaluated_for(scene)
            if getattr(owner, "animation_data", None) is not None
            for path in {curve.data_path for curve in compat.animating(owner) if curve.driver is None}
            if not (owner in posed and channels.channel_of(path))
        ]

    def put_back(self) -> None:
        """Set values again that differ now; other add-ons may have deleted some of their owners."""
        for owner, path, value in self._values:
            with suppress(ReferenceError, ValueError, AttributeError, TypeError, KeyError):
                if value is not None and value_at(owner, path) != value:
                    set_at(owner, path, value)


class PoseSnapshot:
    """The pose of an armature, and what live solving knows of it."""

    def __init__(self, ob: Object) -> None:
        """Take a snapshot of an armature object's current pose."""
        self._ob = ob
        self._all_bones = np.arange(len(ob.pose.bones))
        self._rows = channels.read(ob, self._all_bones)
        self._stored = fk_store.snapshot(ob)
        self._live = registry.snapshot(ob)

    def put_back(self, *, if_changed: bool = False) -> None:
        """Put back the pose, the FK store, and what live solving knew; or all that only if the pose is another one."""
        if if_changed and np.array_equal(channels.read(self._ob, self._all_bones), self._rows):
            return
        self.put_back_channels()
        fk_store.put_back(self._ob, self._stored)
        # Frames were solved since, for the comparison. Put back a copy, because live solving goes on to change it.
        registry.put_back(self._ob, None if self._live is None else self._live.copy())

    def put_back_channels(self, bones: Sequence[int] | None = None) -> None:
        """Put back the channels of some bones, or of all, including unkeyed edits of animated channels."""
        indices = self._all_bones if bones is None else np.array(bones, dtype=np.int64)
        channels.write(self._ob, indices, self._rows[indices])


class SceneSnapshot:
    """The frame, the pose of live armatures, which chains are enabled, and unkeyed edits of everything else."""

    def __init__(self, view_layer: ViewLayer, ob: Object) -> None:
        """Take a snapshot of a view layer's scene before chains of an armature object are baked."""
        self._view_layer = view_layer
        self._ob, self._reference = ob, Reference.of(ob)
        scene = view_layer.id_data
        others = [other for other in registry.live_armatures(scene) if other != ob]
        self._frame = scene.frame_current, scene.frame_subframe
        self._edits = Edits(scene, [ob, *others])
        self._enabled = {tip.name: chain_of(tip).enabled for tip in chain.tips(ob)}
        self.pose = PoseSnapshot(ob)
        """The pose of the armature whose chains are baked."""
        self._others = [PoseSnapshot(other) for other in others]

    def restore(self) -> None:
        """Put everything back that was not deleted meanwhile."""
        if self._reference.find() is None:
            self.show_frame()
            return
        with registry.paused(self._ob):
            for tip, enabled in self._enabled.items():
                settings = chain_of(self._ob.pose.bones[tip])
                if settings.enabled != enabled:
                    settings.enabled = enabled
            self.show_frame()
            self.pose.put_back()

    def show_frame(self) -> None:
        """Go back to the frame, and put back unkeyed edits and the pose of other armatures."""
        scene: Scene = self._view_layer.id_data
        frame, subframe = self._frame
        if (scene.frame_current, scene.frame_subframe) == self._frame and not registry.live_armatures(scene):
            self._view_layer.update()  # doesn't evaluate everything that depends on time
        else:
            scene.frame_set(frame, subframe=subframe)
        self._edits.put_back()
        for other in self._others:
            with suppress(ReferenceError):  # another add-on deleted it
                other.put_back(if_changed=True)


@contextmanager
def over_frames(view_layer: ViewLayer, ob: Object) -> Iterator[tuple[ExitStack, SceneSnapshot]]:
    """Let some work on an armature go through frames; if it fails or is cancelled, undo all of it.

    Yields callbacks that undo the work, and what the scene is like before it.

    Raises:
        UserError: the armature shows no pose.
    """
    view_layer.update()
    check_armature(ob, view_layer)
    with ExitStack() as undo:
        undo.callback(view_layer.update)
        before = SceneSnapshot(view_layer, ob)
        undo.callback(before.restore)
        yield undo, before
        undo.pop_all()
    view_layer.update()
