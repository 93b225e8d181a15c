"""Making the deform skeleton alone, beside an armature, with the played motion as keys."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import ArmatureModifier, Context, Object, Scene
from mathutils import Matrix

from ..anatomy.body import Region, ends_of, root_of
from ..anatomy.figure import Figure
from ..chains.make_controls import editing
from ..core import keyframes
from ..core.report import Remark, Report, count_of_frames
from ..core.skeleton import inverse, matrix_array, unscaled
from ..core.steps import part
from ..core.transforms import nearest
from ..core.translation.sentences import UserError, say
from ..core.untyped import Json
from ..rig.plan.order import in_order
from ..solve.maths.products import determinants, times
from ..solve.maths.rotations import matrices, quaternions
from ..solve.problem import Floats, Ints
from .sampling import played
from .scene import over_frames, time_scale

SCALED = 1e-3
"""A bone scaled by more than this gets a remark that its scale is left out."""
MOVED = 1e-7
"""A bone that leaves its place by less than this, in sizes of the skeleton, needs no location keys."""
SAME_PLACE = 1e-3
"""Bones whose ends at rest are closer than this, in bone lengths, stand in for each other."""


class RootMotion(NamedTuple):
    """How the root of a skeleton takes over motion of the hips. It always takes the horizontal movement."""

    name: str
    """Name of the root bone, which is made if it doesn't exist."""
    height: bool = False
    """Whether it moves up and down as well."""
    turn: bool = False
    """Whether it turns about the vertical as well."""

    def of(self, hips: Floats, rest: Floats, root: Floats) -> Floats:
        """Return world matrices (F, 4, 4) of the root.

        Args:
            hips: (F, 4, 4) world matrices of the hips, without scale.
            rest: (4, 4) the same at rest.
            root: (4, 4) world matrix of the root at rest.
        """
        count = len(hips)
        moved = np.broadcast_to(np.eye(4), (count, 4, 4)).copy()
        if self.turn:
            turned = times(hips[:, :3, :3], np.broadcast_to(rest[:3, :3].T, (count, 3, 3)))
            w, _x, _y, z = quaternions(np.moveaxis(turned, 0, -1))
            angle = 2.0 * np.arctan2(z, w)
            moved[:, 0, 0] = moved[:, 1, 1] = np.cos(angle)
            moved[:, 1, 0] = np.sin(angle)
            moved[:, 0, 1] = -moved[:, 1, 0]
        kept = np.array([1.0, 1.0, 1.0 if self.height else 0.0])
        moved[:, :3, 3] = kept * hips[:, :3, 3] - (moved[:, :3, :3] * (kept * rest[:3, 3])).sum(axis=-1)
        return times(moved, np.broadcast_to(root, (count, 4, 4)))


@dataclass(frozen=True)
class Options:
    """What to make."""

    only_deform: bool = True
    root: RootMotion | None = None
    """How a root takes over the motion of the body; None if no bone does."""
    meshes: bool = True
    """Whether to copy the meshes that the armature deforms, for the new armature."""


@dataclass(frozen=True)
class Made(Report):
    """What was made."""

    ob: Object
    """The new armature object."""
    meshes: list[Object]
    first: int
    """The first frame; `frames` is their number."""
    frames: int
    remarks: list[str]
    """Sentences about what the new armature doesn't have."""

    def sentences(self) -> Iterator[str]:
        """Yield what was baked, and the remarks."""
        yield say("Baked {frames} to '{name}'", frames=count_of_frames(self.frames), name=self.ob.name)
        yield from map(Remark, self.remarks)

    @property
    def entry(self) -> Json:
        """The report as JSON can hold it."""
        return {"armature": self.ob.name_full, "frames": self.frames, "remarks": self.remarks}


def make_stepwise(
    context: Context, ob: Object, frames: Sequence[int], options: Options
) -> Generator[float, None, Made]:
    """Make and key the skeleton; yields progress (0 to 1). Closing the generator undoes everything.

    The keys hold the played motion. The new armature object has no transform of its own, and its bones have no scale.

    Args:
        context: gives the scene and the view layer.
        ob: the armature object, in Object or Pose Mode.
        frames: ascending frames.
        options: what to make.

    Raises:
        UserError: the skeleton can't be made; nothing was changed.
    """
    view_layer = context.view_layer
    with over_frames(view_layer, ob) as (undo, before):
        bones = Bones.of(ob, options.only_deform)
        root = _root_place(bones, options.root)
        if not frames:
            raise UserError("There are no frames to bake")
        deformed = [other for other in view_layer.objects if other.type == "MESH" and _modifiers(other, ob)]
        shown, worlds = yield from part(played(view_layer, ob, bones.read, frames, (ob, *deformed)), 0.0, 0.9)
        world = worlds[0, 0]
        if determinants(world[None, :3, :3])[0] <= 0.0:
            raise UserError("'{object}' is mirrored by its scale. Apply the scale first", object=ob.name)
        rest = np.array([matrix_array(ob.data.bones[b].matrix_local) for b in bones.read.tolist()])
        rest = rigid(times(np.repeat(world[None], len(rest), axis=0), rest))
        before.restore()
        moving = rigid(shown)
        lost = np.argwhere(~np.isfinite(moving).all(axis=(2, 3)))
        if len(lost):
            frame, bone = lost[0].tolist()
            no_rotation = (
                "Bone '{bone}' has no rotation on frame {frame}: it, or a bone above it, is scaled to zero. "
                "Reset the scale"
            )
            raise UserError(no_rotation, bone=ob.data.bones[bones.read[bone]].name, frame=frames[frame])
        wanted = _with_root(bones, moving, rest, world, options.root, root)
        spans = (bones.figure.tails - bones.figure.heads)[list(bones.taken)]  # at rest, in the armature
        lengths = np.linalg.norm(spans @ world[:3, :3].T, axis=1).tolist()
        made, names = _make(context, ob, wanted, [*lengths, max(lengths)], undo)
        yield 0.95
        _key(context.scene, made, wanted._replace(names=names), frames, undo)
        meshes = _copies(context, ob, made, deformed, worlds[0, 1:], undo) if options.meshes else []
    return Made(made, meshes, frames[0], len(frames), _remarks(ob, bones, times(inverse(worlds[:, :1]), shown)))


def select(context: Context, obs: Sequence[Object]) -> None:
    """Select these objects in Object Mode, and no others; the first one becomes active."""
    objects = context.view_layer.objects
    if objects.active is not None and objects.active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for own in objects:
        own.select_set(own in obs)
    objects.active = obs[0]


# ---- bones


class Bones(NamedTuple):
    """The bones taken from an armature, parents before their children."""

    figure: Figure
    """The armature at rest."""
    taken: tuple[int, ...]
    """Indices of these bones in the figure."""
    parents: tuple[int, ...]
    """For each, the index of its parent among the taken bones; -1 if it has none."""
    read: Ints
    """The bones whose poses are needed: the taken bones, then the one that carries the body, whether taken or not."""

    @classmethod
    def of(cls, ob: Object, only_deform: bool) -> Bones:
        """Take the deform bones of an armature object, or all of its bones.

        Raises:
            UserError: it has no deform bones.
        """
        figure = Figure.of(ob)
        taken = [b for b, name in enumerate(figure.names) if not only_deform or ob.data.bones[name].use_deform]
        if not taken:
            none = "'{object}' has no deform bone. Turn on Deform for the bones that deform its meshes"
            raise UserError(none, object=ob.name)
        found: dict[int, int] = {}
        for bone in taken:
            found[bone] = _parent_of(figure, taken, found, bone)
        ordered: list[int] = []
        while len(ordered) < len(taken):
            ordered += [bone for bone in taken if bone not in ordered and found[bone] in (-1, *ordered)]
        parents = tuple(ordered.index(found[bone]) if found[bone] >= 0 else -1 for bone in ordered)
        feet = ends_of(figure, Region.LEG)
        hips = root_of(figure, feet[0]) if feet else ordered[0]
        return cls(figure, tuple(ordered), parents, np.array([*ordered, hips], dtype=np.int64))

    @property
    def names(self) -> list[str]:
        """Names of the taken bones."""
        return [self.figure.names[bone] for bone in self.taken]


def _parent_of(figure: Figure, taken: Sequence[int], found: Mapping[int, int], bone: int) -> int:
    """Return the nearest taken bone above, or a taken bone in the place of one above; -1 if there is none.

    In control rigs, the parents of deform bones are often other bones, which deform bones elsewhere follow.
    """
    above = figure.parents[bone]
    while above >= 0:
        for other in [above] if above in taken else [b for b in taken if figure.are_together(b, above, SAME_PLACE)]:
            line = [other]  # upwards, as far as parents are known
            while found.get(line[-1], -1) >= 0:
                line.append(found[line[-1]])
            if bone not in line:
                return other
        above = figure.parents[above]
    return -1


def _root_place(bones: Bones, root: RootMotion | None) -> int:
    """Return which taken bone gets the motion of the body; -1 for a new bone, or none.

    Raises:
        UserError: this bone is below another one.
    """
    if root is None or root.name not in bones.names:
        return -1
    place = bones.names.index(root.name)
    if bones.parents[place] >= 0:
        below = "'{bone}' can't be the root: it is below '{parent}'. Choose a bone without a parent, or a new name"
        raise UserError(below, bone=root.name, parent=bones.names[bones.parents[place]])
    return place


class _Wanted(NamedTuple):
    """The k bones of the new armature and their motion in world space."""

    names: list[str]
    parents: list[int]
    """Index of each bone's parent; -1 if it has none."""
    rest: Floats
    """(k, 4, 4)"""
    poses: Floats
    """(F, k, 4, 4)"""


def _with_root(
    bones: Bones, moving: Floats, rest: Floats, world: Floats, root: RootMotion | None, place: int
) -> _Wanted:
    """Return the bones to make, with the root if one is wanted; a new one comes last, where the armature is."""
    found = _Wanted(bones.names, list(bones.parents), rest[:-1], moving[:, :-1].copy())
    if root is None:
        return found
    stand = np.eye(4)
    stand[:3, 3] = world[:3, 3]
    own = root.of(moving[:, -1], rest[-1], found.rest[place] if place >= 0 else stand)
    if place >= 0:
        found.poses[:, place] = own
        return found._replace(parents=[place if p < 0 and b != place else p for b, p in enumerate(found.parents)])
    return _Wanted(
        [*found.names, root.name],
        [*(len(found.names) if p < 0 else p for p in found.parents), -1],
        np.concatenate([found.rest, stand[None]]),
        np.concatenate([found.poses, own[:, None]], axis=1),
    )


def _make(
    context: Context, ob: Object, wanted: _Wanted, lengths: Sequence[float], undo: ExitStack
) -> tuple[Object, list[str]]:
    """Make an armature object from bones; return it and the names that the bones got."""
    data = bpy.data.armatures.new(f"{ob.data.name} Skeleton")
    undo.callback(lambda: bpy.data.armatures.remove(data))
    made = bpy.data.objects.new(f"{ob.name} Skeleton", data)
    undo.callback(lambda: bpy.data.objects.remove(made))
    context.scene.collection.objects.link(made)
    context.view_layer.update()
    with editing(context, made) as edited:
        own = [edited.new(name) for name in wanted.names]
        for i, bone in enumerate(own):
            bone.head, bone.tail = (0.0, 0.0, 0.0), (0.0, lengths[i], 0.0)
            bone.matrix = Matrix(wanted.rest[i].tolist())
            if wanted.parents[i] >= 0:
                bone.parent = own[wanted.parents[i]]
        given = [bone.name for bone in own]  # Blender shortens long names
    for name in given:
        source = ob.data.bones.get(name)
        made.data.bones[name].use_deform = source is None or source.use_deform
    context.view_layer.update()
    return made, given


# ---- keys


def rigid(poses: Floats) -> Floats:
    """Return poses (..., 4, 4) without scale and shear; Y axes keep their direction, and nothing is mirrored."""
    found = unscaled(poses)
    found[..., :3, 2] = np.cross(found[..., :3, 0], found[..., :3, 1])
    return found


def local(poses: Floats, rest: Floats, parents: Sequence[int]) -> tuple[Floats, Floats]:
    """Return locations (F, k, 3) and quaternions (F, k, 4) relative to parents, from world poses without scale.

    Blender's rest matrices of bones that point back along their parent are off by about 1e-5. Each bone is computed
    from where its parent's keys really put the parent, so joints still end up in place.

    Args:
        poses: (F, k, 4, 4) world matrices.
        rest: (k, 4, 4) rest matrices as Blender has them.
        parents: index of each bone's parent; -1 if it has none.
    """
    locations, turns = np.empty((*poses.shape[:2], 3)), np.empty((*poses.shape[:2], 4))
    played: dict[int, Floats] = {}
    for bone in in_order(range(len(parents)), {bone: [above] for bone, above in enumerate(parents)})[0]:
        start, parent = np.broadcast_to(rest[bone], poses[:, bone].shape), parents[bone]
        if parent >= 0:
            start = times(played[parent], times(inverse(rest[parent]), rest[bone]))
        basis = times(inverse(start), poses[:, bone])
        q = quaternions(np.moveaxis(rigid(basis)[:, :3, :3], 0, -1)).astype(np.float32).astype(np.float64)
        q /= np.linalg.norm(q, axis=0)
        locations[:, bone], turns[:, bone] = basis[:, :3, 3], q.T
        basis[:, :3, :3] = np.moveaxis(matrices(q), -1, 0)
        played[bone] = times(start, basis)
    return locations, turns


def _key(scene: Scene, made: Object, wanted: _Wanted, frames: Sequence[int], undo: ExitStack) -> None:
    rest = np.array([matrix_array(made.data.bones[name].matrix_local) for name in wanted.names])
    locations, turns = local(wanted.poses, rest, wanted.parents)
    size = float(np.ptp(rest[:, :3, 3], axis=0).max())
    turned = nearest(turns.astype(np.float32), "QUATERNION")
    keyed = []
    for b, name in enumerate(wanted.names):
        moved = locations[:, b]
        if np.abs(moved).max() > MOVED * size:
            keyed += [keyframes.Channel(name, "location", i, moved[:, i]) for i in range(3)]
        keyed += [keyframes.Channel(name, "rotation_quaternion", i, turned[:, b, i]) for i in range(4)]
    undo.callback(keyframes.write_channels(made, keyed, time_scale(scene) * np.array(frames, dtype=np.float64)))
    made.animation_data.action.name = made.name


def _remarks(ob: Object, bones: Bones, poses: Floats) -> list[str]:
    found = []
    scaled = np.abs(np.linalg.norm(poses[:, :-1, :3, :3], axis=2) - 1.0).max(axis=(0, 2)) > SCALED
    if scaled.any():
        left_out = "The scale of '{bone}' was left out: the joints stay in place, but the mesh changes shape"
        found.append(say(left_out, bone=bones.names[int(np.argmax(scaled))]))
    if curved := [name for name in bones.names if ob.data.bones[name].bbone_segments > 1]:
        found.append(say("Bendy bone '{bone}' stays straight", bone=curved[0]))
    return found


# ---- meshes


def _copies(
    context: Context, ob: Object, made: Object, meshes: Sequence[Object], placed: Floats, undo: ExitStack
) -> list[Object]:
    """Copy the meshes that an armature deforms for another armature; the copies share their data.

    Args:
        context: gives the scene.
        ob: the armature object.
        made: the other armature object, which has no transform of its own.
        meshes: these meshes.
        placed: (n, 4, 4) their world matrices.
        undo: removes the copies.
    """
    found = []
    for mesh, place in zip(meshes, placed, strict=True):
        copy = mesh.copy()
        undo.callback(bpy.data.objects.remove, copy)
        copy.name = f"{mesh.name} Skeleton"
        context.scene.collection.objects.link(copy)
        copy.parent, copy.parent_type = made, "OBJECT"
        copy.matrix_parent_inverse, copy.matrix_basis = Matrix(), Matrix(place.tolist())
        for modifier in _modifiers(copy, ob):
            modifier.object = made
        found.append(copy)
    return found


def _modifiers(mesh: Object, ob: Object) -> list[ArmatureModifier]:
    return [own for own in mesh.modifiers if isinstance(own, ArmatureModifier) and own.object == ob]
