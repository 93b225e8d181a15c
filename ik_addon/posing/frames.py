"""A body posed on the frames of a script, and keyed: all frames, or none."""

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
from ..rig.plan.presence import why_closed
from ..solve import Grab, PosedBody, Poser
from ..solve.maths.products import times_back
from ..solve.maths.rotations import norm, quaternions, vectors_of
from ..solve.problem import Floats, Ints
from .drag import MISSED, Ask, bones_of, end_pins, pins_of, solved_chains, touched
from .extent import Extent
from .read import Stand
from .script import Frame, Goal, Root, Script, ScriptError, Space

TURNED = 0.1
"""Maximum miss of a goal's orientation, in degrees."""
PINNED = 1e-4
"""Pins hold if they are off by at most this, in sizes of the body, and by at most `TURNED`."""
MOVED = 1e-6
"""The root's location is keyed if it moves by more than this, in sizes of the body."""


@dataclass(frozen=True)
class FrameReport:
    """How well goals and pins were met on a frame; distances are in sizes of the body, angles in degrees."""

    frame: int
    error: float
    """Largest distance of a goal's joint from its place."""
    turn: float
    """Largest angle of a goal's bone from its orientation."""
    pin_error: float
    pin_turn: float
    limited: list[str] = field(default_factory=list)
    """Bones held back by a joint limit."""

    @property
    def missed(self) -> bool:
        """Whether a goal was not reached, or a pin did not hold."""
        return self.error > MISSED or self.pin_error > PINNED or max(self.turn, self.pin_turn) > TURNED


@dataclass(frozen=True)
class FramesReport:
    """The result of a script."""

    action: str
    each: list[FrameReport]
    position: float
    """Largest distance of playback of the keys from the poses, in sizes of the body."""
    remarks: list[str] = field(default_factory=list)
    """Messages about targets of live chains that something else moves."""

    @property
    def missed(self) -> list[int]:
        """The frames on which a goal was not reached, or a pin did not hold."""
        return [each.frame for each in self.each if each.missed]

    @property
    def message(self) -> str:
        """The whole result in sentences."""
        found = [f"Posed {_frames(len(self.each))} into '{self.action}'"]
        missed = self.missed
        if not missed:
            found.append("All goals were reached, and all pins hold")
        else:
            worst = max(self.each, key=lambda each: max(each.error / MISSED, each.pin_error / PINNED))
            shown = ", ".join(str(frame) for frame in missed[:5]) + (", ..." if len(missed) > 5 else "")
            error = 100.0 * max(worst.error, worst.pin_error)
            found.append(f"Goals or pins were missed on {_frames(len(missed))} ({shown})")
            found.append(f"Worst on frame {worst.frame}: {error:.2g}% of the body's size")
        alike = self.position <= PINNED
        found.append("Playback matches the poses" if alike else f"Playback differs by {100.0 * self.position:.2g}%")
        return ". ".join([*found, *self.remarks])


def _frames(number: int) -> str:
    return "1 frame" if number == 1 else f"{number} frames"


@dataclass(frozen=True)
class _Posed:
    """A posed frame."""

    rows: Row
    """(bones, 17) channels of all bones, from `Stand.rows`."""
    fk: Row
    """(bones, 17) channels of all bones before posing."""
    bones: Ints
    """Indices of the pose bones that were posed."""
    root: int | None
    """The bone that moved freely."""
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
    """Pose an armature on the frames of a script and key all bones that move, each of them on every frame.

    Each frame starts from the armature's existing pose, whose pinned bones hold.

    Args:
        context: a context with the scene and the view layer.
        ob: the armature object.
        script: the frames, goals and pins.
        new_action: key into a copy of the armature's action.
        go_on: called before each frame; an exception that it raises ends the work.

    Raises:
        ScriptError, UserError: the armature can't be posed like this; nothing was changed.
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
                if not tips:  # by now the keys of targets can't be undone
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
    """Key the targets and poles of live chains to the pose; return messages about what does not stay."""
    if not tips:
        return []
    work = snap.steps(context, ob, tips, [frame.number for frame in script.frames])
    return list(finished(work, go_on))


def _pose(ob: bpy.types.Object, script: Script, frame: Frame) -> _Posed:
    """Pose the body from its pose on the current frame."""
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
    """Return the bone that moves freely; empty: none."""
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
    """Return the largest angle, in degrees, from a grabbed bone to its orientation."""
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
    """Return the channels to key: rotations of posed bones and of `more` bones, and locations of roots that move."""
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
