"""A body posed on frames as a script says, and keyed: all frames, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ..anatomy.figure import Figure
from ..bake.restore import SceneSnapshot
from ..bake.selection import check_armature, time_scale
from ..goals import snap
from ..pose import channels, keyframes
from ..pose.channels import FIELDS, Row, rotation_field
from ..pose.constraints import steered_bones
from ..pose.continuity import continuous
from ..pose.steps import finished
from ..rig.plan.chain import why_closed
from ..solve import Grab, PosedBody, Poser
from ..solve.maths.products import times_back
from ..solve.maths.rotations import norm, quaternions, vectors_of
from ..solve.problem import Floats, Ints
from .drag import MISSED, Ask, bones_of, end_pins, pins_of, solved_chains, touched
from .extent import Extent
from .read import Stand
from .script import Frame, Goal, Root, Script, ScriptError, Space

TURNED = 0.1
"""Degrees by which a goal's orientation may be missed."""
PINNED = 1e-4
"""Pins hold within this part of the body's size, and `TURNED`."""
MOVED = 1e-6
"""The root is keyed where it moves by more than this, in sizes of the body."""


@dataclass(frozen=True)
class FrameReport:
    """What became of the goals and pins on a frame; distances are parts of the body's size, angles degrees."""

    frame: int
    error: float
    """Largest distance of a goal's bone to its place."""
    turn: float
    """Largest angle of a goal's bone to its orientation."""
    pin_error: float
    pin_turn: float
    limited: list[str] = field(default_factory=list)
    """Bones that a joint limit held back."""

    @property
    def missed(self) -> bool:
        """Whether a goal was not reached, or a pin did not hold."""
        return self.error > MISSED or self.pin_error > PINNED or max(self.turn, self.pin_turn) > TURNED


@dataclass(frozen=True)
class FramesReport:
    """What became of a script."""

    action: str
    each: list[FrameReport]
    position: float
    """How far playback of the keys is from the poses, at most, in sizes of the body."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about targets of live chains that are held elsewhere."""

    @property
    def missed(self) -> list[int]:
        """The frames on which a goal was not reached, or a pin did not hold."""
        return [each.frame for each in self.each if each.missed]

    @property
    def message(self) -> str:
        """All of this in sentences."""
        frames = "1 frame" if len(self.each) == 1 else f"{len(self.each)} frames"
        found = [f"Posed {frames} into '{self.action}'"]
        missed = self.missed
        if not missed:
            found.append("All goals were reached, and all pins hold")
        else:
            worst = max(self.each, key=lambda each: max(each.error / MISSED, each.pin_error / PINNED))
            shown = ", ".join(str(frame) for frame in missed[:5]) + (", ..." if len(missed) > 5 else "")
            farthest = f"on frame {worst.frame} by {100.0 * max(worst.error, worst.pin_error):.2g} % of the body's size"
            found.append(f"Goals were missed on {len(missed)} of them ({shown}), {farthest}")
        alike = self.position <= PINNED
        found.append("Playback matches the poses" if alike else f"Playback differs by {100.0 * self.position:.2g} %")
        return ". ".join([*found, *self.remarks])


@dataclass(frozen=True)
class _Posed:
    """A frame that was posed."""

    rows: Row
    """(bones, 17) channels of all bones, as `Stand.rows` gives them."""
    fk: Row
    """The same without goals."""
    bones: Ints
    """Indices of the pose bones that were posed."""
    root: int | None
    """The one that moved freely."""
    ends: Floats
    """(2, n, 3) heads and tails of all bones, in the order of the body."""
    size: float
    report: FrameReport


def pose_frames(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    script: Script,
    *,
    new_action: bool = False,
    go_on: Callable[[], None] = lambda: None,
) -> FramesReport:
    """Pose an armature on the frames of a script and key the bones that move, all of them on each of its frames.

    Each frame begins from the pose that the armature has there, and pins hold what stands in it.

    Args:
        context: its scene and view layer are used.
        ob: the armature object.
        script: what its body does.
        new_action: key into a copy of the armature's action.
        go_on: called before each frame; what it raises ends the work.

    Raises:
        ScriptError, UserError: the armature can't be posed like that; nothing was changed.
    """
    view_layer = context.view_layer
    view_layer.update()
    closed = why_closed(ob)
    if closed:
        raise ScriptError(f"'{ob.name_full}' can't be posed. {closed}")
    check_armature(ob, view_layer)
    for bone in sorted(script.bones):
        if bone not in ob.pose.bones:
            raise ScriptError(f"'{ob.name}' has no bone '{bone}'")
    scene = context.scene
    before = SceneSnapshot(view_layer, ob)
    try:
        posed = []
        for frame in script.frames:
            go_on()
            scene.frame_set(frame.number)
            posed.append(_pose(ob, script, frame))
        tips = touched(solved_chains(ob), {bone for one in posed for bone in one.bones.tolist()})
        keyed = _channels(ob, posed, bones_of(tips))
        times = np.array([frame.number for frame in script.frames], dtype=np.float64) * time_scale(scene)
        undo = keyframes.write_channels(ob, keyed, times, new_action=new_action)
        try:
            remarks = _snapped(context, ob, tips, script, go_on)
            position = 0.0
            for frame, one in zip(script.frames, posed, strict=True):
                if not tips:  # the keys of targets stay from here on
                    go_on()
                scene.frame_set(frame.number)
                position = max(position, float(norm((_ends(ob) - one.ends).T).max()) / one.size)
        except BaseException:
            undo()
            raise
    except BaseException:
        before.restore()
        view_layer.update()
        raise
    before.show_frame()
    data = ob.animation_data
    action = data.action.name if data and data.action else ""
    return FramesReport(action, [one.report for one in posed], position, remarks)


def _snapped(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: list[bpy.types.PoseBone],
    script: Script,
    go_on: Callable[[], None],
) -> list[str]:
    """Key the targets and poles of live chains, so that they solve to the pose; return what does not stay."""
    if not tips:
        return []
    work = snap.steps(context, ob, tips, [frame.number for frame in script.frames])
    return list(finished(work, go_on))


def _pose(ob: bpy.types.Object, script: Script, frame: Frame) -> _Posed:
    """Pose the body as it stands on the current frame."""
    steered = steered_bones(ob)
    for goal in frame.goals:
        if goal.bone in steered:
            raise ScriptError(
                f"A constraint or driver moves '{goal.bone}'. Mute it, or give a goal to what the bone follows"
            )
    asks = [Ask(goal.bone, goal.use_tail, frame.pins) for goal in frame.goals]
    pins = frame.pins
    if pins is None:
        pins = pins_of(ob, asks[0], Figure.of(ob, steered)) if asks else {}
    stand = Stand.of(ob, _root(ob, script, asks, bool(pins), steered))
    grabs = [_grab(ob, script, stand, goal, frame.number) for goal in frame.goals]
    placed = {grab.bone for grab in grabs if grab.target is not None}
    held = stand.pins(pins, placed, {grab.bone for grab in grabs if grab.rotation is not None})
    held += end_pins(stand, solved_chains(ob), {grab.bone for grab in grabs})
    fk = channels.read(ob, np.arange(len(ob.pose.bones)))
    poser = Poser(stand.body, held, grabs)
    rotations = [grab.rotation for grab in grabs if grab.rotation is not None]
    posed = poser.pose([grab.target for grab in grabs if grab.target is not None], rotations)
    pose = stand.posed(posed)
    report = FrameReport(
        frame.number,
        posed.error / poser.size,
        _turn(posed, grabs),
        posed.pin_error / poser.size,
        float(np.degrees(posed.pin_turn)),
        [ob.pose.bones[i].name for i in stand.order[posed.at_limit].tolist()],
    )
    root = None if stand.body.root is None else int(stand.order[stand.body.root])
    rows = stand.rows(ob, fk, pose, poser.tree.bones, stand.body.root)
    return _Posed(rows, fk, stand.order[poser.tree.bones], root, _ends_of(stand, pose), poser.size, report)


def _root(
    ob: bpy.types.Object, script: Script, asks: list[Ask], has_pins: bool, steered: Mapping[str, Sequence[str]]
) -> str:
    """The bone that moves freely; empty: none does."""
    if script.root is Root.NONE:
        return ""
    if isinstance(script.root, str):
        if script.root in steered:
            raise ScriptError(f"A constraint moves '{script.root}', so it can't be the root. Mute it, or name another")
        data = ob.data.bones[script.root]
        if data.parent is not None and data.use_connect:
            raise ScriptError(f"'{script.root}' is connected to its parent, so it can't be the root. Name another")
        root = script.root
    else:
        found = {name for ask in asks if (name := _root_of(ob, ask, has_pins, steered))}
        root = min(found, key=lambda name: (len(ob.data.bones[name].parent_recursive), name), default="")
    for ask in asks:
        bone = ob.data.bones[ask.bone]
        if root and root not in (bone.name, *(above.name for above in bone.parent_recursive)):
            raise ScriptError(f"'{ask.bone}' is not below '{root}', the bone that moves the body. Name another root")
    return root


def _root_of(ob: bpy.types.Object, ask: Ask, has_pins: bool, steered: Mapping[str, Sequence[str]]) -> str:
    figure = Figure.of(ob, steered)
    free = None if has_pins else ask.without_pins
    return Extent.of(ob, figure, [figure.names.index(ask.bone)], use_tail=ask.use_tail, without_pins=free).root


def _grab(ob: bpy.types.Object, script: Script, stand: Stand, goal: Goal, frame: int) -> Grab:
    space = Matrix() if script.space is Space.ARMATURE else ob.matrix_world
    place = rotation = None
    if goal.location is not None:
        try:
            place = np.array(space.inverted() @ Vector(goal.location))
        except ValueError:
            raise ScriptError(f"'{ob.name}' has a scale of zero on frame {frame}") from None
    if goal.rotation is not None:
        rotation = np.array((space.to_quaternion().inverted() @ Quaternion(goal.rotation)).to_matrix())
    bone = stand.index[goal.bone]
    return Grab(bone, place, stand.tail(bone) if goal.use_tail else None, rotation)


def _turn(posed: PosedBody, grabs: list[Grab]) -> float:
    """The largest angle in degrees of what is grabbed to its orientation."""
    left = [
        float(norm(vectors_of(quaternions(times_back(grab.rotation, posed.frames[grab.bone])))))
        for grab in grabs
        if grab.rotation is not None
    ]
    return float(np.degrees(max(left, default=0.0)))


def _ends_of(stand: Stand, pose: Floats) -> Floats:
    lengths = stand.skeleton.lengths[stand.order]
    heads = pose[:, :3, 3]
    return np.stack([heads, heads + pose[:, :3, 1] * lengths[:, None]])


def _ends(ob: bpy.types.Object) -> Floats:
    stand = Stand.of(ob, "")
    return _ends_of(stand, stand.pose)


def _channels(ob: bpy.types.Object, posed: list[_Posed], more: set[int]) -> list[keyframes.Channel]:
    """What is keyed: the rotations of `more` bones and of those posed on some frame, and the place of the root."""
    bones = sorted(more.union(*(one.bones.tolist() for one in posed)))
    roots = {one.root for one in posed}
    modes = [ob.pose.bones[bone].rotation_mode for bone in bones]
    rows = continuous(np.array([one.rows[bones] for one in posed]), modes)
    location = FIELDS["location"]
    unit = max(one.size for one in posed)
    found = []
    for k, (bone, mode) in enumerate(zip(bones, modes, strict=True)):
        fields = [rotation_field(mode)]
        moved = max(float(np.abs(one.rows[bone, location] - one.fk[bone, location]).max()) for one in posed)
        if bone in roots and moved > MOVED * unit:
            fields.insert(0, "location")
        for name in fields:
            values = rows[:, k, FIELDS[name]].T
            found += [keyframes.Channel(ob.pose.bones[bone].name, name, i, own) for i, own in enumerate(values)]
    return found
