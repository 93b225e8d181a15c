"""Write many keyframes at once into the action of an object, all of them or none, or a sudden change at one frame."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np
from bpy.types import AnimData, FCurve, Object

from ..solve.problem import Floats
from . import compat
from .key_curve import FIELDS, LEAVING, SAME_FRAME, Keys, enum_value, new_keys, read_keys, split, write_keys
from .steps import finished
from .translation.sentences import UserError, say
from .untyped import Column, Value

FRESH = ("interpolation", "select_control_point", "select_left_handle", "select_right_handle", *LEAVING[2:])
"""Attributes, besides positions, whose values in Blender's new keyframes differ from those of a bake."""
AT_ONCE = 1_000_000
"""Number of keys that are written before `writing` yields."""


@dataclass(slots=True)
class Channel:
    """One number of the channels of a bone, or of an object, over the frames of a bake."""

    bone: str
    """Name of the bone, and of the group for new F-curves."""
    field: str
    """A transform property of a pose bone, such as `rotation_quaternion`."""
    index: int
    values: Column
    """(F,) one value per frame, in the unit of the property."""
    of_object: bool = False
    """Whether it belongs to the object itself; `bone` is then only the name of the group for new F-curves."""

    @property
    def data_path(self) -> str:
        """Data path of the property from the object."""
        return self.field if self.of_object else f'pose.bones["{bpy.utils.escape_identifier(self.bone)}"].{self.field}'

    def name_in(self, ob: Object) -> str:
        """Return what messages call this channel of an object."""
        if self.of_object:
            return say("'{field}' of '{object}'", field=self.field, object=ob.name)
        return say("'{field}' of bone '{bone}' in '{object}'", field=self.field, bone=self.bone, object=ob.name)


def write_channels(ob: Object, channels: Sequence[Channel], frames: Floats, **options: Value) -> Callable[[], None]:
    """Run all of `writing` at once, with its options."""
    return finished(writing(ob, channels, frames, **options))


def writing(
    ob: Object, channels: Sequence[Channel], frames: Floats, *, new_action: bool = False, holds: bool = False
) -> Generator[float, None, Callable[[], None]]:
    """Key channels at ascending `frames` (F,), replacing keys in their range; yields progress (0 to 1).

    Keys outside the range stay exactly as they are, and so does the curve between them. With `new_action`, the keys go
    into a copy of the object's action, and the original action keeps its keys. Curves are straight if every frame has
    a key, smooth if not, and with `holds` constant from key to key.

    Returns a function that restores everything as it was. If an exception is raised, or the generator is closed,
    everything is already restored.
    """
    check(ob, channels, new_action=new_action)
    if not (np.diff(frames) > SAME_FRAME).all():
        raise ValueError("The frames to key must ascend")
    every_frame = len(frames) > 1 and np.diff(frames).max() <= 1.0
    interpolation = "CONSTANT" if holds else "LINEAR" if every_frame else "BEZIER"
    keys = new_keys(np.stack([frames, np.zeros(len(frames))], axis=1), interpolation)
    some = max(1, AT_ONCE // len(frames))
    with ExitStack() as undo:
        if new_action:
            use_new_action(ob, undo)
        for start in range(0, len(channels), some):
            # Looked up again each time: anything may have happened between two steps.
            owner = compat.curve_owner(ob) if start else compat.ensure_curve_owner(ob, undo)
            if owner is None:
                raise UserError("The action of '{object}' is gone. Bake again", object=ob.name)
            _write(ob, owner, channels[start : start + some], keys, undo)
            yield min(1.0, (start + some) / len(channels))
        return undo.pop_all().close


def use_new_action(ob: Object, undo: ExitStack) -> None:
    """Give an object with an action a copy of it, so that keys go there; `undo` gets callbacks to revert that."""
    action = compat.action_of(ob)
    if action is None:
        return
    if action.is_editable and not action.use_fake_user:  # it may have no other user
        action.use_fake_user = True
        undo.callback(setattr, action, "use_fake_user", False)
    compat.use_copy_of_action(ob, f"{action.name} Baked", undo)


def check(ob: Object, channels: Iterable[Channel], *, new_action: bool = False) -> None:
    """Raise `UserError` if `write_channels` can't key these channels, or the keys would not play back as written."""
    if not ob.is_editable:
        raise UserError(
            "'{object}' is linked from another file and can't be keyed. Make a library override of it", object=ob.name
        )
    data = ob.animation_data
    if data is None:
        return
    _check_action(ob, data, new_action)
    driven = {(driver.data_path, driver.array_index) for driver in data.drivers}
    owner = compat.curve_owner(ob)
    curves = curves_of(ob)
    groups = {} if owner is None else {group.name: group for group in owner.groups}
    for channel in channels:
        what = channel.name_in(ob)
        place = channel.data_path, channel.index
        if place in driven:
            raise UserError("A driver sets {what}, so keys would have no effect. Remove the driver", what=what)
        curve = curves.get(place)
        group = curve.group if curve is not None else groups.get(channel.bone)
        if any(part is not None and part.lock for part in (curve, group)):
            raise UserError("The F-curve of {what} is locked. Unlock it in the Graph Editor", what=what)
        if compat.is_muted(data, curve, group):
            raise UserError(
                "The F-curve of {what} is muted, so keys would have no effect. Unmute or delete it", what=what
            )
        if curve is None:
            continue
        if len(curve.sampled_points):
            raise UserError(
                "The F-curve of {what} is made of samples. Convert it to keyframes in the Graph Editor", what=what
            )
        for modifier in curve.modifiers:
            if not modifier.mute:
                changed = "The F-curve modifier '{type}' on {what} would change the keys. Mute it, or bake it first"
                raise UserError(changed, type=modifier.type.title(), what=what)


def _check_action(ob: Object, data: AnimData, new_action: bool) -> None:
    """Raise `UserError` if the action can't take keys, or other objects use it too."""
    if data.use_tweak_mode:
        raise UserError("A strip of '{object}' is being edited in the NLA Editor. Exit tweak mode", object=ob.name)
    tracks = compat.evaluated_tracks(data)
    if tracks and (data.action_blend_type != "REPLACE" or data.action_influence < 1.0):
        raise UserError(
            "The action of '{object}' is blended with its NLA tracks, so keys would play differently. "
            "Set it to Replace with influence 1 in the NLA Editor",
            object=ob.name,
        )
    solo = next((track for track in tracks if track.is_solo), None)
    if solo is not None:
        raise UserError(
            "The NLA track '{track}' of '{object}' is soloed, so keys would have no effect. "
            "Turn Solo off in the NLA Editor",
            track=solo.name,
            object=ob.name,
        )
    if data.action is None or new_action:
        return
    if not data.action.is_editable:
        raise UserError(
            "The action '{action}' is linked from another file. Bake into a new action", action=data.action.name
        )
    others = compat.other_animated(ob)
    if others:
        shared = "The action '{action}' also animates '{other}', which would change too. Bake into a new action"
        raise UserError(shared, action=data.action.name, other=others[0].name)


def _write(ob: Object, owner: compat.CurveOwner, channels: Sequence[Channel], keys: Keys, undo: ExitStack) -> None:
    """Key some channels; `undo` gets the callbacks that restore them."""
    finite = np.isfinite(np.array([channel.values for channel in channels], dtype=np.float32))
    if not finite.all():
        c, t = np.argwhere(~finite)[0].tolist()
        wrong = "{what} is not a finite number on frame {frame}. Check for a faulty F-curve or driver"
        raise UserError(wrong, what=channels[c].name_in(ob), frame=f"{keys['co'][t, 0]:g}")
    curves, groups = curves_of(ob), {group.name: group for group in owner.groups}
    patterns: dict[int, FCurve] = {}
    made: list[tuple[Channel, bool]] = []
    undo.callback(_remove_curves, ob, made)
    points = keys["co"].copy()
    flat = points.ravel()
    smooth = keys["interpolation"][0, 0] != enum_value("interpolation", "LINEAR")
    for channel in channels:
        path, group = channel.data_path, groups.get(channel.bone)
        points[:, 1] = channel.values
        curve = curves.get((path, channel.index))
        if curve is not None:
            undo.callback(_put_back, ob, channel, read_keys(curve))
            _replace_keys(curve, keys, points)
            continue
        made.append((channel, group is None))
        if compat.COPIES_CURVES and channel.index in patterns:
            curve = owner.fcurves.new_from_fcurve(patterns[channel.index], data_path=path)
            curve.keyframe_points.foreach_set("co_ui", flat)
            if smooth:
                curve.keyframe_points.handles_recalc()
        else:
            curve = patterns[channel.index] = owner.fcurves.new(path, index=channel.index)
            _fill(curve, keys, points)
        if group is None:
            group = groups[channel.bone] = owner.groups.new(channel.bone)
        curve.group = group


def _fill(curve: FCurve, keys: Keys, points: Column) -> None:
    """Add keyframes at points (F, 2) to an F-curve without any."""
    new = curve.keyframe_points
    new.add(len(points))
    for name in FRESH:
        new.foreach_set(name, keys[name].ravel())
    new.foreach_set("co_ui", points.ravel())  # moves the handles as well, which begin at zero
    if keys["interpolation"][0, 0] != enum_value("interpolation", "LINEAR"):  # linear keys do not use their handles
        new.handles_recalc()


def _replace_keys(curve: FCurve, keys: Keys, points: Column) -> None:
    """Replace the keys in the range of points (F, 2) with keys at these points, and leave all others alone."""
    old = read_keys(curve)
    old_frames, last = old["co"][:, 0], points[-1, 0]
    outside = (old_frames < points[0, 0] - SAME_FRAME) | (old_frames > last + SAME_FRAME)
    if not outside.any():
        curve.keyframe_points.clear()
        _fill(curve, keys, points)
        return
    baked = {**keys, "co": points, "handle_left": points, "handle_right": points}
    before = np.flatnonzero(old_frames <= last + SAME_FRAME)
    if len(before) and (old_frames[outside] > last).any():  # out of the range the curve leads as the old one did
        leaving = before[np.argmax(old_frames[before])]
        baked.update({name: np.append(keys[name][:-1], old[name][leaving, None], axis=0) for name in LEAVING})
    order = np.argsort(np.append(old_frames[outside], points[:, 0]), kind="stable")
    merged = {name: np.concatenate([old[name][outside], baked[name]])[order] for name in FIELDS}
    write_keys(curve, merged)
    curve.keyframe_points.handles_recalc()
    # Automatic handles of the keys next to the range would adapt to the new keys and bend the curve outside it.
    kept = order < outside.sum()
    for name, handles in read_keys(curve, ("handle_left", "handle_right")).items():
        handles[kept] = merged[name][kept]
        curve.keyframe_points.foreach_set(name, handles.ravel())


def curves_of(ob: Object) -> dict[tuple[str, int], FCurve]:
    """Map data path and index to F-curve; Blender would search all of them for each lookup."""
    return {(curve.data_path, curve.array_index): curve for curve in compat.curves_of(ob)}


# Undo callbacks look things up by name: a user may have changed the action in between.


def _remove_curves(ob: Object, made: Sequence[tuple[Channel, bool]]) -> None:
    """Remove the F-curves of channels, and their groups where marked."""
    owner = compat.curve_owner(ob)
    if owner is None:
        return
    curves = curves_of(ob)
    for channel, _and_group in made:
        curve = curves.get((channel.data_path, channel.index))
        if curve is not None:
            owner.fcurves.remove(curve)
    for name in {channel.bone for channel, and_group in made if and_group}:
        group = owner.groups.get(name)  # since 4.4 Blender removes empty groups by itself
        if group is not None:
            owner.groups.remove(group)


def _put_back(ob: Object, channel: Channel, keys: Keys) -> None:
    curve = compat.find_curve(ob, channel.data_path, channel.index)
    if curve is not None:
        write_keys(curve, keys)


def key_step(
    ob: Object, channels: Sequence[Channel], frames: tuple[float, float], undo: ExitStack, *, held: bool
) -> None:
    """Key channels on two frames of the action: with their old values on the first, with new ones on the second.

    Args:
        ob: the animated object.
        channels: with two values each. The first value is for channels without a curve; others keep their own.
        frames: the last frame before the step, and the frame of the step.
        undo: gets a callback that restores the curves.
        held: also hold the second key until the next one.

    Raises:
        UserError: if the channels can't be keyed; nothing is changed then.
    """
    found = curves_of(ob)
    places = [(channel.data_path, channel.index) for channel in channels]
    old = {place: read_keys(found[place]) for place in places if place in found and found[place].keyframe_points}
    before = {place: found[place].evaluate(frames[0]) for place in old}
    wanted = [
        replace(channel, values=np.array([before.get(place, channel.values[0]), channel.values[1]]))
        for channel, place in zip(channels, places, strict=True)
    ]
    undo.callback(write_channels(ob, wanted, np.array(frames)))
    found = curves_of(ob)
    for channel, place in zip(wanted, places, strict=True):
        write_keys(found[place], _stepped(old.get(place), frames, channel.values, held))
    compat.tag(ob)


def _stepped(old: Keys | None, frames: tuple[float, float], values: Floats, held: bool) -> Keys:
    """Return the keys of a curve with a step added; the first value is that of the curve."""
    points = np.array([frames, values]).T
    new = new_keys(points, "CONSTANT")
    reach = np.array([(frames[1] - frames[0]) / 3.0, 0.0])
    new["handle_left"][:], new["handle_right"][:] = points - reach, points + reach
    if not held:
        new["interpolation"][1] = enum_value("interpolation", "BEZIER")
    if old is None:
        return new
    is_keyed = (np.abs(old["co"][:, 0] - frames[0]) <= SAME_FRAME).any()
    keys = old if is_keyed else split(old, *points[0].tolist())
    times = keys["co"][:, 0]
    begin, later = (
        {name: own[chosen] for name, own in keys.items()}
        for chosen in (times < frames[0] + SAME_FRAME, times > frames[1] + SAME_FRAME)
    )
    has_earlier = len(begin["co"]) > 1
    if has_earlier and not is_keyed:  # automatic handles would adapt to the new key and bend the curve before it
        for name in ("handle_left_type", "handle_right_type"):
            begin[name][-2:] = enum_value(name, "FREE")
    if len(later["co"]):
        new["handle_right"][1, 0] = frames[1] + (later["co"][0, 0] - frames[1]) / 3.0
        if has_earlier and not held:
            new["interpolation"][1] = begin["interpolation"][-2]
    begin["interpolation"][-1] = enum_value("interpolation", "CONSTANT")
    return {name: np.concatenate([begin[name], new[name][1:], later[name]]) for name in FIELDS}
