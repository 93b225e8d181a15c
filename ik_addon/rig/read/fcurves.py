"""Objects, bones and settings on many frames at once, from their F-curves alone: Blender evaluates no frame for it.

That is possible where nothing but F-curves moves them and what they hang on. Where anything else has a say, or might
have, `Untold` is raised, and Blender must be asked frame by frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import bpy
import numpy as np

from ... import compat
from ...data.neighbours import others_handle_frames
from ...data.settings import chain_of
from ...pose import channels, keyframes, transforms
from ...pose.channels import FIELDS, WIDTH, Row
from ...pose.skeleton import Skeleton, inverse, matrix_array
from ...solve.problem import Bools, Floats, Ints
from ..plan.chain import moved_by
from ..plan.plan import Plan
from ..plan.watch import BONE_PATH, BYSTANDERS, NUMBERS, OBJECT_FIELDS
from .sample import Goals, Sample, orientation, transformed

NOISE = 1e-5
"""Matrices in single precision differ by less than this, in parts of their largest number."""


class Untold(Exception):  # noqa: N818 - it is no error, only not known
    """Something moves by more than F-curves; the message says what."""


class Motion:
    """Where objects and bones are on F frames. Arrays begin with F, or with 1 where nothing is animated."""

    def __init__(self, frames: Sequence[float], skeletons: Mapping[int, Skeleton] = MappingProxyType({})) -> None:
        """Nothing is looked at before it is asked for.

        Args:
            frames: F of them.
            skeletons: those that are known, by `session_uid` of the armature object.
        """
        self._frames = [float(frame) for frame in frames]
        self._skeletons = skeletons
        self._worlds: dict[int, Floats] = {}
        self._armatures: dict[int, _Armature] = {}

    def world(self, ob: bpy.types.Object) -> Floats:
        """World matrices (F, 4, 4) of an object."""
        uid = ob.session_uid
        if uid not in self._worlds:
            self._worlds[uid] = self._placed(ob)
        return self._worlds[uid]

    def armature(self, ob: bpy.types.Object) -> _Armature:
        """The bones of an armature object."""
        uid = ob.session_uid
        if uid not in self._armatures:
            self._armatures[uid] = _Armature(ob, self._skeletons.get(uid) or Skeleton.of(ob), self._frames)
        return self._armatures[uid]

    def goal(self, ob: bpy.types.Object, bone: str) -> Floats:
        """World matrices (F, 4, 4) of an object, or of the head of its bone where it has one of that name."""
        index = ob.pose.bones.find(bone) if bone and ob.type == "ARMATURE" else -1
        return self.world(ob) if index < 0 else self.world(ob) @ self.armature(ob).pose(index)

    def point(self, ob: bpy.types.Object, bone: str) -> Floats:
        """Where (F, 3) the `goal` is in world space."""
        return self.goal(ob, bone)[:, :3, 3] if bone or ob.parent is not None else self.place(ob)

    def place(self, ob: bpy.types.Object) -> Floats:
        """Where (F, 3) an object is in world space that has no parent: less work than its matrices."""
        curves = self._curves_of(ob)
        own, delta = (
            evaluated(getattr(ob, name), curves.get(name, ()), self._frames) for name in ("location", "delta_location")
        )
        return (own + delta).astype(np.float64)

    def _placed(self, ob: bpy.types.Object) -> Floats:
        local = self._local(ob, {name: own for name, own in self._curves_of(ob).items() if name in OBJECT_FIELDS})
        return local if ob.parent is None else self._of_parent(ob) @ local

    def _curves_of(self, ob: bpy.types.Object) -> dict[str, list[bpy.types.FCurve]]:
        """The F-curves of an object that nothing else than these moves."""
        curves, driven = in_force(ob), _driven(ob)
        for path in {*curves, *driven}:
            known = path in OBJECT_FIELDS and path not in driven
            if not known and not path.startswith((*BYSTANDERS, "pose.bones[")):
                raise Untold(f"'{path}' of '{ob.name}' is animated or driven")
        if any(not constraint.mute for constraint in ob.constraints):
            raise Untold(f"'{ob.name}' has constraints")
        return curves

    def _local(self, ob: bpy.types.Object, curves: Mapping[str, list[bpy.types.FCurve]]) -> Floats:
        """Matrices (F, 4, 4) of an object without its parent, from the F-curves of its `OBJECT_FIELDS`."""
        if {"location"}.issuperset(curves):
            moved = self.place(ob)
            local = np.repeat(matrix_array(ob.matrix_basis)[None], len(moved), axis=0)
            local[:, :3, 3] = moved
            return local
        found = {
            name: evaluated(getattr(ob, name), curves.get(name, ()), self._frames).astype(np.float64)
            for name in OBJECT_FIELDS
        }
        mode = ob.rotation_mode
        field = channels.rotation_field(mode)
        turn = transforms.rotations(found[field], mode)
        if mode != "AXIS_ANGLE":  # of the axis and angle Blender has a delta as well, but hides it
            turn = transforms.rotations(found[f"delta_{field}"], mode) @ turn
        place = found["location"] + found["delta_location"]
        return transforms.matrices(place, turn, found["scale"] * found["delta_scale"])

    def _of_parent(self, ob: bpy.types.Object) -> Floats:
        parent, unparented = ob.parent, matrix_array(ob.matrix_parent_inverse)
        above = self.world(parent)
        if ob.parent_type == "BONE" and parent.type == "ARMATURE" and ob.parent_bone in parent.pose.bones:
            bone = parent.data.bones[ob.parent_bone]
            if bone.use_relative_parent:
                raise Untold(f"'{ob.name}' is a child of '{bone.name}' relative to its rest pose")
            pose = self.armature(parent).pose(parent.pose.bones.find(ob.parent_bone)).copy()
            pose[..., :3, 3] += pose[..., :3, 1] * bone.length
            return above @ pose @ unparented
        if ob.parent_type not in {"OBJECT", "ARMATURE"} or parent.type == "CURVE":
            raise Untold(f"'{ob.name}' is a child of more than the place of '{parent.name}'")
        return above @ unparented


class _Armature:
    """The FK pose of an armature object on F frames, bone by bone."""

    def __init__(self, ob: bpy.types.Object, skeleton: Skeleton, frames: Sequence[float]) -> None:
        data = ob.data.animation_data
        if data is not None and (data.action or data.drivers or data.nla_tracks):
            raise Untold(f"The armature '{ob.data.name}' is animated or driven")
        if ob.data.pose_position == "REST" or ob.mode == "EDIT":
            raise Untold(f"'{ob.name}' is not shown in its pose")
        self._ob = ob
        self._frames = frames
        self.skeleton = skeleton
        self._curves = _by_bone(in_force(ob).items())
        self._driven = _by_bone((path, []) for path in _driven(ob))
        self._moved = self._moved_by_constraints()
        self._rows = channels.read(ob, np.arange(len(ob.pose.bones)))
        self._modes = [bone.rotation_mode for bone in ob.pose.bones]
        self._connected = np.array([bone.bone.use_connect for bone in ob.pose.bones], dtype=bool)
        self._poses: dict[int, Floats] = {}

    def hold(self, bones: Ints, rows: Row) -> None:
        """Take rows (k, 17) for what the channels of these bones hold where they are not animated."""
        self._rows[bones] = rows

    def _moved_by_constraints(self) -> set[str]:
        found: set[str] = set()
        for owner in self._ob.pose.bones:
            if not owner.constraints:
                continue
            paths = {*self._curves.get(owner.name, ()), *self._driven.get(owner.name, ())}
            switched = any(path.startswith("constraints") for path in paths)
            for constraint in owner.constraints:
                if switched or not constraint.mute:
                    found.update((owner.name, *moved_by(owner, constraint)))
        return found

    def rows(self, bones: Ints) -> Row:
        """FK channels (F, k, 17) of bones."""
        names = [self.skeleton.names[bone] for bone in bones.tolist()]
        animated = any(name in self._curves for name in names)
        rows = np.repeat(self._rows[bones][None], len(self._frames) if animated else 1, axis=0)
        for k, name in enumerate(names):
            curves = self._curves.get(name, {})
            for path in {*curves, *self._driven.get(name, ())}:
                known = path in FIELDS and path not in self._driven.get(name, ())
                if not known and not path.startswith(("[", "ik_addon.")):
                    raise Untold(f"'{path}' of bone '{name}' in '{self._ob.name}' is animated or driven")
            if name in self._moved:
                raise Untold(f"Bone '{name}' in '{self._ob.name}' is moved by a constraint")
            for path, columns in FIELDS.items():
                if path in curves:
                    rows[:, k, columns] = evaluated(rows[0, k, columns], curves[path], self._frames)
        return rows

    def basis(self, rows: Row, bones: Ints) -> Floats:
        """Basis matrices (F, k, 4, 4) that the channels (F, k, 17) of bones make."""
        found = transforms.basis(rows, [self._modes[bone] for bone in bones.tolist()])
        found[:, self._connected[bones], :3, 3] = 0.0  # Blender leaves the location of connected bones out
        return found

    def pose(self, bone: int) -> Floats:
        """Pose matrices (F, 4, 4) of a bone in armature space."""
        above: Floats | None = None
        for own in [*self.skeleton.ancestors(bone)[::-1], bone]:
            if own not in self._poses:
                index = np.array([own])
                basis = self.basis(self.rows(index), index)[:, 0]
                if above is not None and not self.skeleton.plain[own]:
                    basis, above = np.broadcast_arrays(basis, above)
                self._poses[own] = self.skeleton.to_pose(self._ob, own, basis, above)
            above = self._poses[own]
        return self._poses[bone]

    def numbers(self, tip: str) -> Floats:
        """What `NUMBERS` are (F, 5) for the chain on a tip bone."""
        settings: Any = chain_of(self._ob.pose.bones[tip])
        if tip not in self._curves and tip not in self._driven:
            return np.array([[getattr(settings, name) for name in NUMBERS]])
        columns = []
        for name in NUMBERS:
            path = f"ik_addon.{name}"
            if path in self._driven.get(tip, ()):
                raise Untold(f"'{name}' of the chain on '{tip}' is driven")
            curves = self._curves.get(tip, {}).get(path, [])
            value = evaluated([getattr(settings, name)], curves, self._frames)
            known = settings.bl_rna.properties[name]
            columns.append(np.clip(value, known.hard_min, known.hard_max))
        return np.concatenate(np.broadcast_arrays(*columns), axis=1)


def in_force(ob: bpy.types.Object) -> dict[str, list[bpy.types.FCurve]]:
    """The F-curves that animate an object, by data path, without those that are muted."""
    data = ob.animation_data
    if data is None:
        return {}
    if data.use_tweak_mode or (data.use_nla and any(track.strips for track in data.nla_tracks)):
        raise Untold(f"'{ob.name}' is animated by NLA strips")
    owner = compat.curve_owner(ob)
    if owner is None:
        return {}
    if compat.is_layered(data.action):
        raise Untold(f"The action '{data.action.name}' has several layers or strips")
    found: dict[str, list[bpy.types.FCurve]] = {}
    for curve in owner.fcurves:
        if not compat.is_muted(curve) and curve.is_valid and not curve.is_empty:
            found.setdefault(curve.data_path, []).append(curve)
    return found


def animated(ob: bpy.types.Object, bones: Ints) -> Bools:
    """Which channels (k, 17) of bones an action, NLA strips or drivers set."""
    found = np.zeros((len(bones), WIDTH), dtype=bool)
    rows = {ob.pose.bones[bone].name: row for row, bone in enumerate(bones.tolist())}
    for curve in compat.animating(ob):
        match = BONE_PATH.fullmatch(curve.data_path)
        if match and match["rest"] in FIELDS:
            row = rows.get(bpy.utils.unescape_identifier(match["name"]))
            columns = range(WIDTH)[FIELDS[match["rest"]]]
            if row is not None and curve.array_index < len(columns):
                found[row, columns[curve.array_index]] = True
    return found


def at_frame(ob: bpy.types.Object, bones: Ints, held: Row, frame: float) -> Row:
    """FK channels (k, 17) of bones on a frame, which hold the given ones (k, 17) where they are not animated.

    Unlike asking Blender to evaluate the animation, this leaves no mark by which undo would evaluate it again.

    Raises:
        Untold: something else than F-curves sets them.
    """
    curves, driven = _by_bone(in_force(ob).items()), _by_bone((path, []) for path in _driven(ob))
    rows = held.copy()
    for k, bone in enumerate(bones.tolist()):
        name = ob.pose.bones[bone].name
        if not FIELDS.keys().isdisjoint(driven.get(name, ())):
            raise Untold(f"Bone '{name}' in '{ob.name}' is driven")
        for path, columns in FIELDS.items():
            rows[k, columns] = evaluated(held[k, columns], curves.get(name, {}).get(path, ()), [frame])[0]
    return rows


def evaluated(held: Any, curves: Iterable[bpy.types.FCurve], frames: Sequence[float]) -> Row:
    """Values (F, n) of a property of n numbers, which holds the given ones where no F-curve sets them."""
    row = np.array(held, dtype=np.float32).reshape(1, -1)
    curves = [curve for curve in curves if curve.array_index < row.shape[1]]
    if not curves:
        return row
    rows = np.repeat(row, len(frames), axis=0)
    for curve in curves:
        level = _level_of(curve) if len(curve.keyframe_points) < len(frames) else None
        rows[:, curve.array_index] = list(map(curve.evaluate, frames)) if level is None else level
    return rows


def _level_of(curve: bpy.types.FCurve) -> float | None:
    """The value of an F-curve that has the same one on all frames; None where it may have others."""
    points = curve.keyframe_points
    if len(points) > 1 and points[0].co[1] != points[1].co[1]:
        return None  # as most curves: found without reading all
    values = keyframes.read_keys(curve, ("co",))["co"][:, 1]
    if not len(values) or (values != values[0]).any() or len(curve.modifiers):
        return None
    rest = keyframes.read_keys(curve, ("handle_left", "handle_right", "interpolation"))
    # The other kinds of interpolation can swing even between keys of one value.
    straight = (rest["interpolation"] <= keyframes.enum_value("interpolation", "BEZIER")).all()
    level = straight and all((rest[name][:, 1] == values[0]).all() for name in ("handle_left", "handle_right"))
    return float(values[0]) if level else None


def _driven(ob: bpy.types.Object) -> set[str]:
    """Data paths of an object that drivers set."""
    data = ob.animation_data
    return {driver.data_path for driver in data.drivers if not driver.mute} if data is not None else set()


def _by_bone(paths: Iterable[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
    """What stands below the data path of each bone."""
    found: dict[str, dict[str, Any]] = {}
    for path, value in paths:
        match = BONE_PATH.fullmatch(path)
        if match:
            name = bpy.utils.unescape_identifier(match["name"])
            found.setdefault(name, {})[match["rest"]] = value
    return found


def told(ob: bpy.types.Object, plan: Plan, base: Row, frames: Sequence[float]) -> Sample:
    """What `read.sample` reads on each of F frames, without evaluating one.

    Args:
        ob: the armature object.
        plan: its plan.
        base: (k, 17) what the channels of `Plan.live` hold where they are not animated.
        frames: F of them.

    Raises:
        Untold: more than F-curves have a say.
    """
    if plan.watch:
        raise Untold(f"Settings that chains of '{ob.name}' depend on are animated or driven")
    motion = Motion(frames, {ob.session_uid: plan.skeleton})
    world, armature = motion.world(ob), motion.armature(ob)
    armature.hold(plan.live, base)
    to_object = inverse(world)
    still = np.zeros((1, len(plan.chains), 3))
    target, pole = [], [still[:, c] for c in range(len(plan.chains))]
    turns: list[Floats] = [np.eye(3)[None]] * len(plan.chains)
    for c, chain in enumerate(plan.chains):
        pointers = chain_of(ob.pose.bones[chain.tip])
        if pointers.target is None or (chain.has_pole and pointers.pole is None):
            raise Untold(f"A goal of the chain on '{chain.tip}' was deleted")
        target.append(motion.point(pointers.target, pointers.target_bone))
        if chain.turns:
            turns[c] = orientation(to_object @ motion.goal(pointers.target, pointers.target_bone))
        if chain.has_pole:
            pole[c] = transformed(to_object, motion.point(pointers.pole, pointers.pole_bone))
    # The bones come last: where the goals are not told, as most often, nothing of these is looked at.
    rows = armature.rows(plan.live)
    poses = [armature.pose(bone) for bone in plan.sampled.tolist()]
    count = len(motion._frames)

    def of_all(parts: list[Floats], *shape: int) -> Floats:
        out = np.empty((count, len(parts), *shape))
        for i, part in enumerate(parts):
            out[:, i] = part
        return out

    return Sample(
        world=np.broadcast_to(world, (count, 4, 4)),
        channels=np.broadcast_to(rows, (count, *rows.shape[1:])),
        basis=np.broadcast_to(armature.basis(rows, plan.live), (count, rows.shape[1], 4, 4)),
        poses=of_all(poses, 4, 4),
        goals=Goals(
            target=transformed(to_object[:, None], of_all(target, 3)),
            rotation=of_all(turns, 3, 3),
            pole=of_all(pole, 3),
            settings=of_all([armature.numbers(chain.tip) for chain in plan.chains], 5),
        ),
    )


def may_tell(scene: bpy.types.Scene) -> bool:
    """Whether nothing else than the animation of what is in a scene moves anything as its frames go by."""
    return not others_handle_frames() and scene.render.frame_map_old == scene.render.frame_map_new


def is_same(one: Sample, other: Sample) -> bool:
    """Whether two samples differ by no more than the noise of single precision."""
    size = max(1.0, float(np.abs(one.world).max(initial=0.0)))
    pairs = [(getattr(one, n), getattr(other, n)) for n in ("world", "channels", "basis", "poses")]
    pairs += [(value, vars(other.goals)[name]) for name, value in vars(one.goals).items()]
    return all(
        np.allclose(
            a, b, rtol=NOISE, atol=NOISE * max(size, float(np.abs(np.nan_to_num(a)).max(initial=0.0))), equal_nan=True
        )
        for a, b in pairs
    )
