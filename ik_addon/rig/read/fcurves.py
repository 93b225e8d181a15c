"""Sample objects, bones and settings on many frames from their F-curves alone, without evaluating frames.

This is possible if nothing but F-curves moves them and what they are attached to: those of an action, or of a strip
that plays one as it is, as most importers and Push Down make it. Otherwise `NotDetermined` is raised, and Blender has
to evaluate the frames.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from bpy.types import NlaStrip, NlaTrack, Object, PoseBone, Scene
from mathutils import Matrix

from ...core import channels, compat
from ...core.channels import FIELDS, WIDTH, Row, turned
from ...core.data_paths import below_bone
from ...core.hooks import others_handle_frames
from ...core.settings import chain_of
from ...core.untyped import Struct, Versioned
from ...solve.problem import Bools, Ints
from ..plan.facts import BONE_BYSTANDERS, BYSTANDERS, OBJECT_FIELDS, Settings
from ..plan.inputs import MATRIX, Inputs, Numbers

NOISE = 1e-5
"""Matrices in single precision differ by less than this fraction of their largest number."""


class Curve(Protocol):
    """An F-curve, as an action or a strip plays it."""

    @property
    def array_index(self) -> int:
        """The element of the property that it animates."""

    def evaluate(self, frame: float, /) -> float:
        """Return the value on a frame."""

    def range(self) -> Iterable[float]:
        """Return the first and the last frame with keys."""


Curves = Mapping[str, Sequence[Curve]]
"""F-curves by data path."""


@dataclass(frozen=True)
class _Played:
    """An F-curve as an NLA strip plays it, which is neither scaled nor repeated."""

    curve: Curve
    start: float
    """The first frame of the strip, as the two below in frames of the scene."""
    end: float
    shift: float
    """From frames of the action to those of the scene."""
    holds_back: bool
    """Whether the first frame is held before the strip, too."""

    @property
    def array_index(self) -> int:
        return int(self.curve.array_index)

    def evaluate(self, frame: float, /) -> float:
        if frame < self.start and not self.holds_back:
            raise NotDetermined("Nothing plays before an NLA strip")
        return float(self.curve.evaluate(min(max(frame, self.start), self.end) - self.shift))

    def range(self) -> list[float]:
        return [min(max(frame + self.shift, self.start), self.end) for frame in self.curve.range()]


class NotDetermined(Exception):  # noqa: N818 - no error, only not known
    """Motion is not determined by F-curves alone; the message says why."""


def numbers_at(inputs: Inputs, stored: Row, frames: Sequence[float], fields: Collection[str] = FIELDS) -> Numbers:
    """Return the numbers (F, w) of frames that Blender has not evaluated, exactly as it would evaluate them.

    Args:
        inputs: what frames are computed from.
        stored: (k, 17) channels of the live bones, used where they are not animated.
        frames: the F frames.
        fields: the channels that are sampled; the others are 0, or as stored.

    Raises:
        NotDetermined: F-curves alone do not determine the frames.
    """
    if inputs.is_opaque:
        raise NotDetermined("Constraints place what chains depend on")
    originals = inputs.originals()
    if originals is None:
        raise NotDetermined("An object was deleted")
    numbers = np.empty((len(frames), inputs.width), dtype=np.float32)
    in_all = [in_force(ob) for ob in originals]
    for item, (ob, own) in enumerate(zip(originals, in_all, strict=True)):
        numbers[:, MATRIX * item : MATRIX * (item + 1)] = _matrices(ob, own, frames).reshape(-1, MATRIX)
    rows = numbers[:, inputs.rows].reshape(len(frames), len(inputs.modes), WIDTH)
    settings = numbers[:, inputs.settings].reshape(len(frames), len(inputs.tips), len(Settings._fields))
    for bones in inputs.armatures:
        ob, is_own = originals[bones.item], bones.item == inputs.own
        rows[:, bones.place] = channels.read(ob, bones.indices, fields=fields)
        if is_own:
            rows[:, inputs.live] = stored
        curves, driven = _by_bone(in_all[bones.item].items()), _by_bone((path, []) for path in _driven(ob))
        for i, bone in enumerate(bones.indices.tolist(), start=bones.place.start):
            name = bones.skeleton.names[bone]
            own, apart = curves.get(name, {}), driven.get(name, {})
            for path in {*own, *apart}:
                if path in apart or not path.startswith((*FIELDS, "[", "ik_addon.", *BONE_BYSTANDERS)):
                    raise NotDetermined(f"'{path}' of bone '{name}' in '{ob.name}' is animated or driven")
            for path in own.keys() & fields:
                rows[:, i, FIELDS[path]] = evaluated(rows[0, i, FIELDS[path]], own[path], frames)
        for c, tip in enumerate(inputs.tips if is_own else ()):
            settings[:, c] = _settings(ob.pose.bones[tip], curves.get(tip, {}), driven.get(tip, {}), frames)
    return numbers


def _settings(tip: PoseBone, curves: Curves, driven: Collection[str], frames: Sequence[float]) -> Numbers:
    """Return the values (F, S), or (1, S), of `Settings` for the chain on a tip bone."""
    settings: Struct = chain_of(tip)
    values = np.array([[getattr(settings, name) for name in Settings._fields]], dtype=np.float32)
    for i, name in enumerate(Settings._fields):
        path = f"ik_addon.{name}"
        if path in driven:
            raise NotDetermined(f"'{name}' of the chain on '{tip.name}' is driven")
        if path in curves:
            known, column = settings.bl_rna.properties[name], evaluated(values[0, i], curves[path], frames)
            values = np.repeat(values, len(column) // len(values), axis=0)
            values[:, i] = np.clip(column[:, 0], known.hard_min, known.hard_max)
    return values


def _matrices(ob: Object, curves: Curves, frames: Sequence[float]) -> Numbers:
    """Return matrices (F, 4, 4), or (1, 4, 4), of an object without its parent, as in `Object.matrix_basis`.

    Raises:
        NotDetermined: more than F-curves and its parent places it.
    """
    driven = _driven(ob)
    for path in {*curves, *driven}:
        known = path in OBJECT_FIELDS and path not in driven
        if not known and not path.startswith((*BYSTANDERS, "pose.bones[")):
            raise NotDetermined(f"'{path}' of '{ob.name}' is animated or driven")
    curves = {name: own for name, own in curves.items() if name in OBJECT_FIELDS}
    names = "location", "delta_location"
    own, delta = (evaluated(getattr(ob, name), curves.get(name, ()), frames) for name in names)
    moved = own + delta
    if curves.keys() <= {*names}:
        matrices = np.array(ob.matrix_basis, dtype=np.float32)[None].repeat(len(moved), axis=0)
    else:
        found = {
            name: np.broadcast_to(evaluated(getattr(ob, name), curves.get(name, ()), frames), (len(frames), width))
            for name, width in OBJECT_FIELDS.items()
        }
        mode = ob.rotation_mode
        field = channels.rotation_field(mode)
        turns = np.array([turned(values, mode) for values in found[field].tolist()], dtype=np.float32)
        if mode != "AXIS_ANGLE":  # Blender also has a delta for axis and angle, but hides it
            deltas = found[f"delta_{field}"]
            if (deltas != deltas[:1]).any() or turned(deltas[0].tolist(), mode) != Matrix.Identity(3):
                pairs = zip(deltas.tolist(), turns.tolist(), strict=True)
                turns = np.array([turned(delta, mode) @ Matrix(turn) for delta, turn in pairs], dtype=np.float32)
        matrices = np.zeros((len(frames), 4, 4), dtype=np.float32)
        matrices[:, :3, :3] = turns * (found["scale"] * found["delta_scale"])[:, None, :]
        matrices[:, 3, 3] = 1.0
    matrices[:, :3, 3] = moved
    return matrices + 0.0  # turns -0.0 into 0.0, as `numbers_now` does


def in_force(ob: Object) -> Curves:
    """Return the unmuted F-curves that animate an object, by data path.

    Raises:
        NotDetermined: more than F-curves as they are makes the animation.
    """
    data = ob.animation_data
    if data is None:
        return {}
    tracks = compat.evaluated_tracks(data)
    strip = _plain_strip(tracks) if data.action is None else None
    if data.use_tweak_mode or (tracks and strip is None):
        raise NotDetermined(f"'{ob.name}' is animated by NLA strips")
    user: Versioned = data if strip is None else strip
    owner = compat.curve_owner_of(user)
    if owner is None:
        return {}
    if compat.is_layered(user.action):
        raise NotDetermined(f"The action '{user.action.name}' has several layers or strips")
    found: dict[str, list[Curve]] = {}
    for curve in compat.unmuted(data, owner):
        if curve.is_valid and not curve.is_empty:
            found.setdefault(curve.data_path, []).append(curve if strip is None else _played(strip, curve))
    if strip is not None and any("quaternion" in path and len(own) < 4 for path, own in found.items()):
        raise NotDetermined(f"An NLA strip sets all of the quaternions of '{ob.name}', but not all are keyed")
    return found


def _plain_strip(tracks: Sequence[NlaTrack]) -> NlaStrip | None:
    """Return the only strip that plays, if it does so without blending, scaling or repeating."""
    strips = [strip for track in tracks for strip in track.strips]
    strip = strips[0] if len(strips) == 1 else None
    if strip is None or strip.type != "CLIP" or strip.blend_type != "REPLACE" or strip.extrapolation == "NOTHING":
        return None
    is_blended = strip.mute or strip.use_animated_influence or strip.blend_in > 0.0 or strip.blend_out > 0.0
    is_timed = strip.use_animated_time or strip.use_reverse or strip.scale != 1.0 or strip.repeat != 1.0
    return None if is_blended or is_timed or len(strip.modifiers) > 0 else strip


def _played(strip: NlaStrip, curve: Curve) -> _Played:
    shift = strip.frame_start - strip.action_frame_start
    return _Played(curve, strip.frame_start, strip.frame_end, shift, strip.extrapolation == "HOLD")


def have_posed(ob: Object) -> bool:
    """Whether F-curves have Blender pose an armature on each frame: all of it if they set one channel of a bone."""
    fields = (channels.channel_of(curve.data_path) for curve in compat.curves_of(ob))
    return any(found is not None and found[0] in ob.pose.bones for found in fields)


def mutes(ob: Object, names: Collection[str]) -> tuple[Bools, Bools]:
    """Return whether the user muted each F-curve of an object, and the same with the channels of these bones muted.

    Nothing if another object plays their F-curves, too.
    """
    # An Action constraint plays those of its own bone alone, and a constrained bone is not live.
    curves = () if compat.other_animated(ob) else compat.curves_of(ob)
    own = np.array([curve.mute for curve in curves], dtype=bool)
    found = [channels.channel_of(curve.data_path) for curve in curves]
    return own, own | np.array([channel is not None and channel[0] in names for channel in found], dtype=bool)


def mute(seen: Object, muted: Bools) -> bool:
    """Mute or unmute the F-curves of an evaluated copy; return False if these aren't its own."""
    curves = compat.curves_of(seen)
    if not len(muted) or len(curves) != len(muted):
        return False
    curves.foreach_set("mute", muted)  # leaves no tag
    return True


def animated(ob: Object, bones: Ints) -> Bools:
    """Return which channels (k, 17) of bones are set by an action, NLA strips or drivers."""
    found = np.zeros((len(bones), WIDTH), dtype=bool)
    rows = {ob.pose.bones[bone].name: row for row, bone in enumerate(bones.tolist())}
    data = ob.animation_data
    is_mixed = data is not None and bool(compat.evaluated_tracks(data))
    for curve in compat.animating(ob):
        name, field = channels.channel_of(curve.data_path) or ("", "")
        if field and name in rows:
            columns = range(WIDTH)[FIELDS[field]]
            if is_mixed and field == "rotation_quaternion" and curve.driver is None:
                found[rows[name], columns] = True  # the NLA sets all of a quaternion
            elif curve.array_index < len(columns):
                found[rows[name], columns[curve.array_index]] = True
    return found


def at_frames(ob: Object, bones: Ints, stored: Row, frames: Sequence[float]) -> Row:
    """Return the FK channels (F, k, 17) of bones on frames: animated values, and `stored` (k, 17) where there are none.

    Unlike evaluating the animation in Blender, this leaves no tag that would make undo evaluate it again.

    Raises:
        NotDetermined: something other than F-curves sets the channels.
    """
    curves, driven = _by_bone(in_force(ob).items()), _by_bone((path, []) for path in _driven(ob))
    rows = np.repeat(stored[None], len(frames), axis=0)
    for k, bone in enumerate(bones.tolist()):
        name = ob.pose.bones[bone].name
        if not FIELDS.keys().isdisjoint(driven.get(name, ())):
            raise NotDetermined(f"Bone '{name}' in '{ob.name}' is driven")
        for path, columns in FIELDS.items():
            rows[:, k, columns] = evaluated(stored[k, columns], curves.get(name, {}).get(path, ()), frames)
    return rows


def evaluated(unanimated: Row | list[float], curves: Iterable[Curve], frames: Sequence[float]) -> Row:
    """Return values (F, n), or (1, n), of a property with n elements; elements without F-curves stay `unanimated`."""
    row = np.array(unanimated, dtype=np.float32).reshape(1, -1)
    curves = [curve for curve in curves if curve.array_index < row.shape[1]]
    if not curves:
        return row
    rows = np.repeat(row, len(frames), axis=0)
    for curve in curves:
        rows[:, curve.array_index] = list(map(curve.evaluate, frames))
    return rows


def _driven(ob: Object) -> set[str]:
    """Return the data paths of an object that drivers set."""
    return {driver.data_path for driver in compat.drivers_of(ob) if not driver.mute}


def _by_bone(paths: Iterable[tuple[str, Sequence[Curve]]]) -> dict[str, dict[str, Sequence[Curve]]]:
    """Group values by bone, then by the part of their data path below the bone."""
    found: dict[str, dict[str, Sequence[Curve]]] = {}
    for path, value in paths:
        name, rest = below_bone(path)
        if name:
            found.setdefault(name, {})[rest] = value
    return found


def decide_alone(scene: Scene) -> bool:
    """Whether a scene's animation alone moves things: no frame handlers of other add-ons, and no time remapping."""
    return not others_handle_frames() and scene.render.frame_map_old == scene.render.frame_map_new
