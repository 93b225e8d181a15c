"""Making the deform skeleton alone, beside an armature, with the played motion as keys."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Matrix

from ..chains.make_controls import editing
from ..core import keyframes
from ..core.report import Remark, Report, count_of_frames
from ..core.skeleton import inverse, matrix_array
from ..core.steps import part
from ..core.transforms import nearest
from ..core.translation.sentences import UserError, say
from ..core.untyped import Json
from ..solve.maths.products import determinants, times
from ..solve.problem import Floats
from .restore import SceneSnapshot
from .sampling import played
from .selection import check_armature, time_scale
from .skeleton_bones import Bones
from .skeleton_motion import RootMotion, local, rigid

SCALED = 1e-3
"""A bone scaled by more than this gets a remark that its scale is left out."""
MOVED = 1e-7
"""A bone that leaves its place by less than this, in sizes of the skeleton, needs no location keys."""


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

    ob: bpy.types.Object
    """The new armature object."""
    meshes: list[bpy.types.Object]
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
    context: bpy.types.Context, ob: bpy.types.Object, frames: Sequence[int], options: Options
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
    view_layer.update()
    check_armature(ob, view_layer)
    bones = Bones.of(ob, options.only_deform)
    root = _root_place(bones, options.root)
    if not frames:
        raise UserError("There are no frames to bake")
    with ExitStack() as undo:
        before = SceneSnapshot(view_layer, ob)
        undo.callback(before.restore)
        deformed = _meshes_of(view_layer, ob)
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
            raise UserError(
                "Bone '{bone}' has no rotation on frame {frame}: it, or a bone above it, is scaled to zero. "
                "Reset the scale",
                bone=ob.data.bones[bones.read[bone]].name,
                frame=frames[frame],
            )
        wanted = _with_root(bones, moving, rest, world, options.root, root)
        lengths = [_length(bones, world, b) for b in bones.taken]
        made, names = _make(context, ob, wanted, [*lengths, max(lengths)], undo)
        yield 0.95
        _key(context.scene, made, replace(wanted, names=names), frames, undo)
        meshes = _copies(context, ob, made, deformed, worlds[0, 1:], undo) if options.meshes else []
        undo.pop_all()
    view_layer.update()
    return Made(made, meshes, frames[0], len(frames), _remarks(ob, bones, times(inverse(worlds[:, :1]), shown)))


def select(context: bpy.types.Context, made: Made, *, extend: bool = False) -> None:
    """Select what was made in Object Mode, and deselect everything else unless `extend`."""
    objects = context.view_layer.objects
    if objects.active is not None and objects.active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in objects if not extend else ():
        other.select_set(False)
    for own in (made.ob, *made.meshes):
        own.select_set(True)
    objects.active = made.ob


def _root_place(bones: Bones, root: RootMotion | None) -> int:
    """Return which taken bone gets the motion of the body; -1 for a new bone, or none.

    Raises:
        UserError: this bone is below another one.
    """
    if root is None or root.name not in bones.names:
        return -1
    place = bones.names.index(root.name)
    if bones.parents[place] >= 0:
        raise UserError(
            "'{bone}' can't be the root: it is below '{parent}'. Choose a bone without a parent, or a new name",
            bone=root.name,
            parent=bones.names[bones.parents[place]],
        )
    return place


@dataclass(frozen=True)
class _Wanted:
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
        return replace(found, parents=[place if p < 0 and b != place else p for b, p in enumerate(found.parents)])
    return _Wanted(
        [*found.names, root.name],
        [*(len(found.names) if p < 0 else p for p in found.parents), -1],
        np.concatenate([found.rest, stand[None]]),
        np.concatenate([found.poses, own[:, None]], axis=1),
    )


def _length(bones: Bones, world: Floats, bone: int) -> float:
    """Return the length of a bone at rest, in world space."""
    span = bones.figure.tails[bone] - bones.figure.heads[bone]
    return float(np.linalg.norm((world[:3, :3] * span).sum(axis=1)))


def _make(
    context: bpy.types.Context, ob: bpy.types.Object, wanted: _Wanted, lengths: Sequence[float], undo: ExitStack
) -> tuple[bpy.types.Object, list[str]]:
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


def _key(
    scene: bpy.types.Scene, made: bpy.types.Object, wanted: _Wanted, frames: Sequence[int], undo: ExitStack
) -> None:
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
    times_ = time_scale(scene) * np.array(frames, dtype=np.float64)
    undo.callback(keyframes.write_channels(made, keyed, times_))
    made.animation_data.action.name = made.name


def _remarks(ob: bpy.types.Object, bones: Bones, poses: Floats) -> list[str]:
    found = []
    sizes = np.linalg.norm(poses[:, :-1, :3, :3], axis=2)
    scaled = np.abs(sizes - 1.0).max(axis=(0, 2)) > SCALED
    if scaled.any():
        name = bones.names[int(np.argmax(scaled))]
        left_out = "The scale of '{bone}' was left out: the joints stay in place, but the mesh changes shape"
        found.append(say(left_out, bone=name))
    curved = [name for name in bones.names if ob.data.bones[name].bbone_segments > 1]
    if curved:
        found.append(say("Bendy bone '{bone}' stays straight", bone=curved[0]))
    return found


# ---- meshes


def _meshes_of(view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the meshes of a view layer that an armature deforms with a modifier."""
    return [other for other in view_layer.objects if other.type == "MESH" and _modifiers(other, ob)]


def _copies(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    made: bpy.types.Object,
    meshes: Sequence[bpy.types.Object],
    placed: Floats,
    undo: ExitStack,
) -> list[bpy.types.Object]:
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


def _modifiers(mesh: bpy.types.Object, ob: bpy.types.Object) -> list[bpy.types.ArmatureModifier]:
    own = [modifier for modifier in mesh.modifiers if isinstance(modifier, bpy.types.ArmatureModifier)]
    return [modifier for modifier in own if modifier.object == ob]
