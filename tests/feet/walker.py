"""A figure whose feet follow targets that move like the feet of a clip."""

from typing import Any

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from tests import rigs
from tests.feet import clips
from tests.reliability.states import activate

ANKLE, LENGTH = 0.08, 0.9
SLIDE, TURN = 1e-4, 0.05
"""How far a planted foot may slide, in leg lengths, and turn, in degrees."""
SIDES = {"Left": "L", "Right": "R"}


def figure(name: str = "turn", excess: float = -0.02, frames: int = 110) -> bpy.types.Object:
    """Return hips and two legs, with chains whose targets have a clip's keys; the hips hold still above the feet.

    Args:
        name: of the clip.
        excess: distance by which the feet are out of the legs' reach, when they are below the hips.
        frames: how much of the clip to take.
    """
    ob = rigs.armature("Figure")
    top = ANKLE + 0.995 * LENGTH
    rigs.add_bones(ob, [(0, 0, top), (0, 0, top + 0.2), (0, 0, top + 0.5)], ["hips", "chest"])
    for side, end in SIDES.items():
        x = 0.1 if side == "Left" else -0.1
        knee = (x, 0.04, ANKLE + 0.5 * LENGTH)
        leg, foot = [(x, 0, top), knee, (x, 0, ANKLE)], [(x, 0, ANKLE), (x, 0.14, 0.0), (x, 0.2, 0.0)]
        rigs.add_bones(ob, leg, [f"thigh.{end}", f"shin.{end}"], parent="hips", connect=False)
        rigs.add_bones(ob, foot, [f"foot.{end}", f"toes.{end}"], parent=f"shin.{end}")
    for end in SIDES.values():
        tip = rigs.chain(ob, f"shin.{end}", rigs.empty(f"Target {end}", ob.pose.bones[f"foot.{end}"].head), 2)
        tip.ik_addon.end_bone = f"foot.{end}"
        activate(ob, tip.name)
        bpy.ops.ik_addon.follow_rotation()
    clip = clips.make(name)
    scene = bpy.context.scene
    scene.render.fps = int(clip.rate)
    scene.frame_start, scene.frame_end = 1, min(frames, len(clip.feet["Left"].frames))
    for side, end in SIDES.items():
        target: Any = ob.pose.bones[f"shin.{end}"].ik_addon.target
        target.rotation_mode = "QUATERNION"
        for frame, pose in enumerate(clip.feet[side].frames[: scene.frame_end], 1):
            target.matrix_world = Matrix(pose.tolist())
            target.keyframe_insert("location", frame=frame)
            target.keyframe_insert("rotation_quaternion", frame=frame)
    hips = ob.pose.bones["hips"]
    length = rigs.length(ob, "shin.L", 2)
    rigs.key(hips, "location", {1: (0.0, ANKLE + (1.0 + excess) * length - top, 0.0)})
    activate(ob, "shin.L")
    scene.frame_set(1)
    ob.ik_addon.live = True
    return ob


def walking(name: str, bend: float = 3.0) -> bpy.types.Object:
    """Return a figure whose hips go along with the feet of a clip, as high as knees bent by some degrees allow."""
    ob = figure(name)
    ob.ik_addon.live = False
    hips, top = ob.pose.bones["hips"], np.array(ob.data.bones["hips"].head_local)
    targets: list[Any] = [ob.pose.bones[f"shin.{end}"].ik_addon.target for end in SIDES.values()]
    frames = range(1, bpy.context.scene.frame_end + 1)
    seen = rigs.on_frames(frames, lambda: [np.array(target.matrix_world.translation) for target in targets])
    ankles = np.array(list(seen.values()))
    middle = _smoothed(ankles.mean(axis=1))
    reach = rigs.length(ob, "shin.L", 2) * np.cos(np.radians(0.5 * bend))
    away = ankles[..., :2] - middle[:, None, :2] - np.array([[0.1, 0.0], [-0.1, 0.0]])
    heights = ankles[..., 2] + np.sqrt(np.maximum(reach**2 - (away * away).sum(axis=-1), 0.05))
    around = np.lib.stride_tricks.sliding_window_view(np.pad(heights.min(axis=1), 4, mode="edge"), 9)
    middle[:, 2] = _smoothed(around.min(axis=1)[:, None])[:, 0]
    rigs.key(hips, "location", {frame: (x, z, -y) for frame, (x, y, z) in enumerate((middle - top).tolist(), 1)})
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    return ob


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values (F, k), smoothed over nine frames."""
    weights = np.hanning(11)[1:-1] / np.hanning(11).sum()
    return np.stack([np.convolve(np.pad(own, 4, mode="edge"), weights, mode="valid") for own in values.T], axis=1)


def play(ob: bpy.types.Object, step: int = 1) -> NDArray[np.float64]:
    """Return the world matrices (frames, bones, 4, 4) that Blender shows."""
    scene = bpy.context.scene

    def world() -> NDArray[np.float64]:
        own = np.array(rigs.evaluated(ob).matrix_world)
        return own @ rigs.pose(ob).reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)

    return np.array(list(rigs.on_frames(range(scene.frame_start, scene.frame_end + 1, step), world).values()))


def world_of(ob: bpy.types.Object) -> NDArray[np.float64]:
    """Return the world matrices (frames, 4, 4) of an object."""
    frames = range(bpy.context.scene.frame_start, bpy.context.scene.frame_end + 1)
    return np.array(list(rigs.on_frames(frames, lambda: np.array(rigs.evaluated(ob).matrix_world)).values()))


def limbs(ob: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """Return the tips of all chains."""
    return [bone for bone in ob.pose.bones if bone.ik_addon.is_chain]


def pivots(ob: bpy.types.Object, poses: NDArray[np.float64], tip: str) -> NDArray[np.float64]:
    """Return the positions (2, F, 3) of a chain's heel and toe."""
    chain: Any = ob.pose.bones[tip].ik_addon
    end: int = ob.pose.bones.find(chain.end_bone)
    own = poses[:, end]
    return np.array([own[:, :3, :3] @ np.array(pivot) + own[:, :3, 3] for pivot in (chain.heel_pivot, chain.toe_pivot)])


def keys(addon: Any, ob: bpy.types.Object, end: str) -> list[tuple[int, int]]:
    """Return the frames and values of a leg's contact keys."""
    curve = addon.module("core.contact_keys").curve_of(ob.pose.bones[f"shin.{end}"])
    return [] if curve is None else [(round(k.co[0]), round(k.co[1])) for k in curve.keyframe_points]


def contacts(addon: Any, tip: bpy.types.PoseBone) -> NDArray[np.bool_]:
    """Return whether heel and toe (2, frames) of a chain touch."""
    frames = np.arange(bpy.context.scene.frame_start, bpy.context.scene.frame_end + 1, dtype=np.float64)
    found: NDArray[np.bool_] = addon.module("core.contact_keys").read(tip, frames)
    return found


def slide(addon: Any, ob: bpy.types.Object, poses: NDArray[np.float64]) -> float:
    """Return how far a heel or toe slides in its contacts at most, in lengths of the leg."""
    most = 0.0
    for tip in limbs(ob):
        for own, points in zip(contacts(addon, tip), pivots(ob, poses, tip.name), strict=True):
            for start, stop in addon.module("feet.filling").runs(own):
                gap = float(np.linalg.norm(points[start:stop] - points[start], axis=1).max())
                most = max(most, gap / rigs.length(ob, tip.name, 2))
    return most


def plant(ob: bpy.types.Object, **options: Any) -> NDArray[np.float64]:
    """Find contacts, plant the feet, and return the world matrices (frames, bones, 4, 4) that Blender shows then."""
    assert bpy.ops.ik_addon.find_contacts(chains=options.get("chains", "LEGS")) == {"FINISHED"}
    assert bpy.ops.ik_addon.plant(**options) == {"FINISHED"}
    return play(ob)


def assert_hold(addon: Any, ob: bpy.types.Object, poses: NDArray[np.float64]) -> None:
    """Assert that feet hold still in their contacts."""
    assert slide(addon, ob, poses) < SLIDE
    assert turned(addon, ob, poses) < TURN


def turned(addon: Any, ob: bpy.types.Object, poses: NDArray[np.float64]) -> float:
    """Return by how many degrees a foot that stands flat turns."""
    most = 0.0
    for tip in limbs(ob):
        end = ob.pose.bones.find(tip.ik_addon.end_bone)
        for start, stop in addon.module("feet.filling").runs(contacts(addon, tip).all(axis=0)):
            axes = poses[start:stop, end, :3, :3] / np.linalg.norm(poses[start:stop, end, :3, :3], axis=1)[:, None]
            chord = np.linalg.norm(axes - axes[:1], axis=(1, 2)).max() / np.sqrt(8.0)
            most = max(most, float(np.degrees(2.0 * np.arcsin(min(chord, 1.0)))))
    return most
