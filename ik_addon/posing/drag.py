"""A bone of an armature on its way: the body follows, what is pinned holds, and all of it can be taken back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ..anatomy.figure import Figure
from ..data.settings import chain_of, object_of
from ..goals.autokey import auto_key, goes_back
from ..goals.snap import in_fk, snap_here
from ..live import registry
from ..pose import channels
from ..pose.channels import FIELDS, Row
from ..rig.plan.chain import ChainError, end_of, posed_bones, reach_of, steered_bones, tips, turning_end
from ..solve import Grab, Pin, PosedBody, Poser
from ..solve.maths.products import times, times_back
from ..translation.sentences import say
from .figure import feet_of, root_of
from .read import Stand

FLAGS = frozenset(("LOCATION", "ROTATION"))


class Free(Enum):
    """What holds a figure that has no pins."""

    FEET = "FEET"
    """Its feet stay where they are."""
    ROOT = "ROOT"
    """Its root stays, and the joints from there to what is dragged turn."""


@dataclass(frozen=True)
class Ask:
    """What is dragged, and what holds."""

    bone: str
    use_tail: bool = False
    """Drag the tail of the bone, not its head."""
    pins: dict[str, frozenset[str]] | None = None
    """What of bones is pinned, `FLAGS` by name; None: as bones have it stored."""
    without_pins: Free = Free.FEET


class BodyDrag:
    """A bone on its way."""

    def __init__(self, context: bpy.types.Context, ob: bpy.types.Object, ask: Ask) -> None:
        """Take hold of it.

        Raises:
            ChainError: it can't be dragged.
        """
        context.view_layer.update()
        if ob.pose.bones.get(ask.bone) is None:
            raise ChainError("'{rig}' has no bone '{bone}'. Choose one of its bones", rig=ob.name, bone=ask.bone)
        steered = steered_bones(ob)
        if ask.bone in steered:
            raise ChainError("A constraint moves '{bone}'. Mute it, or drag what the bone follows", bone=ask.bone)
        self.ob, self.bone = ob, ask.bone
        self._tips = [tip.name for tip in _solved_chains(ob)]
        pins = pins_of(ob, ask, Figure.of(ob, steered))
        root = _root_name(ob, ask, bool(pins), steered)
        self.stand = stand = Stand.of(ob, root)
        grabbed = stand.index[ask.bone]
        point = None
        if ask.use_tail:
            point = stand.pose[grabbed, :3, 3] + stand.pose[grabbed, :3, 1] * ob.data.bones[ask.bone].length
        wanted = [Pin(stand.index[name], "LOCATION" in own, "ROTATION" in own) for name, own in pins.items() if own]
        self.pins = [pin for pin in wanted if not (pin.bone == grabbed and pin.location)]
        self.pins += [Pin(grabbed, False, pin.rotation) for pin in wanted if pin.bone == grabbed and pin.location]
        self.pins += [pin for tip in _solved_chains(ob) for pin in self._end_pins(tip)]
        self._grab = Grab(grabbed, np.zeros(3), point)
        self._turning: Poser | None = None
        try:
            self._poser = Poser(stand.body, self.pins, [self._grab])
        except ValueError:
            raise ChainError(
                "'{bone}' is not below '{root}', the bone that moves the body. Drag another",
                bone=ask.bone,
                root=root,
            ) from None
        self._before: Row = channels.read(ob, np.arange(len(ob.pose.bones)))
        self._rows = self._before
        head = stand.pose[grabbed, :3, 3] if point is None else point
        self.start = ob.matrix_world @ Vector(head.tolist())
        """Where the dragged joint was, in world space."""
        self.moved: list[int] = []
        """Pose bones that turned or moved."""

    @property
    def size(self) -> float:
        """Of the body, in the armature's unit."""
        return self._poser.size

    @property
    def world(self) -> Matrix:
        """Where the dragged joint was, turned as its bone, in world space."""
        turn = (self.ob.matrix_world @ self.ob.pose.bones[self.bone].matrix).to_quaternion()
        return Matrix.LocRotScale(self.start, turn, None)

    @property
    def done(self) -> str:
        """What is said when it is let go."""
        return say("Posed the body by '{bone}'", bone=self.bone)

    def move(
        self, context: bpy.types.Context, offset: Vector, turn: Quaternion | None = None, *, hurried: bool = False
    ) -> PosedBody:
        """Bring the dragged joint to an offset from where it was, or as near as can be; the bones are posed so.

        Args:
            context: of the view layer.
            offset: in world space.
            turn: rotation of the bone in world space; None: as comes of the joint's place.
            hurried: makes no difference, each pose is found to the end.
        """
        del hurried
        target = np.array(self.ob.matrix_world.inverted() @ (self.start + offset))
        poser, rotations = self._poser, []
        if turn is not None:
            if self._turning is None:
                self._turning = Poser(self.stand.body, self.pins, [replace(self._grab, rotation=np.eye(3))])
            poser = self._turning
            space = self.ob.matrix_world.to_quaternion()
            own = np.array((space.inverted() @ turn @ space).to_matrix())
            rotations = [times(own, self.stand.body.frames[self._grab.bone])]
        posed = poser.pose([target], rotations)
        self._write(context, posed, poser)
        return posed

    def settle(self, context: bpy.types.Context) -> None:
        """Nothing is left to be done when the mouse rests."""

    def finish(self, context: bpy.types.Context) -> list[str]:
        """Let go: chains keep the pose, and keys are set if auto keying is on.

        Returns:
            Sentences about what will not stay.
        """
        remarks = []
        tips_ = [] if not self.moved else [self.ob.pose.bones[name] for name in self._tips if self._touches(name)]
        if tips_:
            of_chains = {self.ob.pose.bones.find(bone.name) for tip in tips_ for bone in posed_bones(tip)}
            own = np.array(sorted(of_chains.union(self.moved)), dtype=np.int64)
            with in_fk(context, self.ob, tips_):
                channels.write(self.ob, own, self._rows[own])
                context.view_layer.update()
            remarks += snap_here(context, self.ob, tips_)
        now = channels.read(self.ob, np.arange(len(self._before)))
        for i in self.moved:
            bone = self.ob.pose.bones[i]
            different = now[i] != self._before[i]
            fields = [field for field, columns in FIELDS.items() if different[columns].any()]
            auto_key(context, bone, fields)
            if goes_back(context, bone, fields):
                remarks.append(
                    say("'{bone}' is animated and goes back on the next frame change. Key it", bone=bone.name)
                )
        return remarks

    def cancel(self, context: bpy.types.Context) -> None:
        """Restore everything exactly."""
        with registry.paused(self.ob):
            channels.write(self.ob, np.arange(len(self._before)), self._before)
            context.view_layer.update()

    def _end_pins(self, tip: bpy.types.PoseBone) -> list[Pin]:
        """What the target of a live chain holds, but where the chain itself is dragged."""
        own = posed_bones(tip)
        end = end_of(tip)
        if self.bone in {bone.name for bone in own} or (end is not None and self.bone == end.name):
            return []
        last = self.stand.index[tip.name]
        place = self.stand.pose[last] @ np.array(reach_of(tip).to_4d())
        found = [Pin(last, rotation=chain_of(tip).use_rotation, point=place[:3])]
        if turning_end(tip) is not None:
            found.append(Pin(self.stand.index[own[-1].name], location=False))
        return found

    def _touches(self, tip: str) -> bool:
        """Whether a bone of a chain was posed."""
        own = {self.ob.pose.bones.find(bone.name) for bone in posed_bones(self.ob.pose.bones[tip])}
        return not own.isdisjoint(self.moved)

    def _write(self, context: bpy.types.Context, posed: PosedBody, poser: Poser) -> None:
        stand, ob = self.stand, self.ob
        turns = times_back(posed.frames, stand.body.frames)
        pose = stand.pose.copy()
        pose[:, :3, :3] = times(turns, stand.pose[:, :3, :3])
        pose[:, :3, 3] = posed.heads
        rows = self._before.copy()
        last, self.moved = self.moved, []
        for bone in poser.tree.bones.tolist():
            i, parent = int(stand.order[bone]), int(stand.body.parents[bone])
            above = None if parent < 0 else pose[parent][None]
            basis = stand.skeleton.to_basis(ob, i, pose[bone][None], above)
            pose_bone = ob.pose.bones[i]
            rotation = channels.basis_rotation(basis, rows[i][None])
            rows[i] = channels.with_rotation(rows[i][None], rotation, np.array([pose_bone.rotation_mode]))[0]
            if bone == stand.body.root:
                rows[i, FIELDS["location"]] = basis[0, :3, 3]
            self.moved.append(i)
        self._rows = rows
        with registry.paused(ob):  # chains follow at the end, see `finish`
            written = sorted({*last, *self.moved})
            channels.write(ob, np.array(written, dtype=np.int64), rows[written])
            context.view_layer.update()


def pins_of(ob: bpy.types.Object, ask: Ask, figure: Figure) -> dict[str, frozenset[str]]:
    """What of bones holds, by name: what is asked for, else what is stored, else what `without_pins` says."""
    pins = ask.pins
    if pins is None:
        pins = {bone.name: frozenset(chain_of(bone).pin) for bone in ob.pose.bones if chain_of(bone).pin}
    found = dict(pins)
    if not found and ask.without_pins is Free.FEET:
        found = {figure.names[foot]: FLAGS for foot in feet_of(figure)}
    return found


def _solved_chains(ob: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """The tips of the chains that solving poses now."""
    return [tip for tip in tips(ob) if chain_of(tip).enabled] if object_of(ob).live else []


def _root_name(ob: bpy.types.Object, ask: Ask, has_pins: bool, steered: frozenset[str]) -> str:
    """The bone that moves freely; empty: none does."""
    figure = Figure.of(ob, steered)
    grabbed = figure.names.index(ask.bone)
    root = root_of(figure, grabbed)
    if not has_pins and ask.without_pins is Free.ROOT and root != grabbed:
        return ""
    # A connected bone can't move away from its parent.
    for bone in figure.up(root):
        data = ob.data.bones[figure.names[bone]]
        if data.parent is None or not data.use_connect:
            return figure.names[bone]
    return ""
