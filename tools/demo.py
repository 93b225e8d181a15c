"""The demo: Blender's human metarig carries a box around, with IK on its spine, arms and legs.

Run by `make demo`. Everything uses the installed extension, as a user would: the script adds five chains, solves live,
bakes, saves `build/demo.blend`, renders pictures next to it, and prints how accurately and how fast the chains
followed.
The exit code is nonzero if a target was missed or the bake differs from the live solution.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import NDArray

from tools import blender, scenery
from tools.environments import ROOT

BUILD = ROOT / "build"
FRAMES = range(1, 121)
STILLS = (25, 48, 74)
WORST_ERROR = 1e-4
"""Tip error, in chain lengths, above which a target counts as missed. All targets of this demo can be reached."""
WORST_BAKE = 1e-5
"""Difference in meters above which the bake counts as different from the live solution."""

Point = tuple[float, float, float]

# bpy's type stubs do not know what the extension adds to Blender.
OPERATORS: Any = bpy.ops


@dataclass(frozen=True)
class Chain:
    """A chain of the demo. Its target has the same name."""

    name: str
    tip: str
    length: int
    pole: str = ""


CHAINS = (
    Chain("Spine", "spine.003", 4),
    Chain("Left arm", "forearm.L", 2, "Left elbow"),
    Chain("Right arm", "forearm.R", 2, "Right elbow"),
    Chain("Left leg", "shin.L", 2, "Left knee"),
    Chain("Right leg", "shin.R", 2, "Right knee"),
)


@dataclass(frozen=True)
class Playback:
    """Measurements taken while the frames were played."""

    errors: dict[str, float]
    """Largest distance from tip to target, in chain lengths, by chain name."""
    iterations: dict[str, float]
    """Mean number of solver iterations."""
    joints: NDArray[np.float64]
    """Head of each bone, (frames, bones, 3), in meters."""


# ---- the scene


def new_scene() -> bpy.types.Object:
    """Return the animated metarig with its chains, not solved yet, in a new file with the extension's settings."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.context.preferences.filepaths.save_version = 0  # no backup beside the file
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    rig = build_rig()
    add_chains(rig)
    add_props()
    animate(rig)
    return rig


def build_rig() -> bpy.types.Object:
    """Add Rigify's human metarig."""
    _addon_utils().enable("rigify", default_set=True)
    bpy.ops.object.armature_human_metarig_add()
    rig = bpy.context.object
    assert rig is not None
    rig.name = "Carrier"
    rig.show_in_front = True
    return rig


def dress(rig: bpy.types.Object) -> None:
    """Give the metarig, which has no mesh, a body colored by chain, and set up a stage and a camera."""
    colors = {
        "spine": scenery.material("Spine", (0.85, 0.36, 0.07)),
        "arm": scenery.material("Arms", (0.02, 0.36, 0.50)),
        "leg": scenery.material("Legs", (0.16, 0.20, 0.52)),
        "rest": scenery.material("Body", (0.72, 0.70, 0.66)),
    }

    def part(
        bone: str, head: float, tail: float, color: str = "rest", width: float = 1.0, span: float = 1.0
    ) -> scenery.Part:
        return scenery.Part(bone, head, tail, colors[color], width, span)

    parts = [
        part("spine", 0.095, 0.085, "spine", 1.45),
        part("spine.001", 0.085, 0.085, "spine", 1.4),
        part("spine.002", 0.085, 0.105, "spine", 1.4),
        part("spine.003", 0.105, 0.06, "spine", 1.5),
        part("spine.004", 0.05, 0.047),
        part("spine.005", 0.047, 0.05),
        part("spine.006", 0.075, 0.1, span=0.5),
    ]
    for side in ("L", "R"):
        parts += [
            part(f"shoulder.{side}", 0.05, 0.055),
            part(f"upper_arm.{side}", 0.055, 0.042, "arm"),
            part(f"forearm.{side}", 0.042, 0.03, "arm"),
            part(f"hand.{side}", 0.03, 0.028, width=1.3),
            part(f"thigh.{side}", 0.085, 0.058, "leg"),
            part(f"shin.{side}", 0.058, 0.04, "leg"),
            part(f"foot.{side}", 0.042, 0.032),
            part(f"toe.{side}", 0.032, 0.022, width=1.4),
        ]
        fingers = [bone for bone in rig.data.bones[f"hand.{side}"].children_recursive if "palm" not in bone.name]
        parts += [part(bone.name, 0.0095, 0.0085) for bone in fingers]
    scenery.body(rig, parts)
    scenery.stage((2.3, -4.3, 1.5), (0.13, 0.0, 1.08), lens=39.5)


def add_chains(rig: bpy.types.Object) -> None:
    """Add the chains to the rig, each with the target and pole that the extension creates."""
    for chain in CHAINS:
        rig.data.bones.active = rig.data.bones[chain.tip]
        OPERATORS.ik_addon.chain_add(chain_length=chain.length, with_pole=bool(chain.pole))
        settings = settings_of(rig, chain)
        settings.target.name = chain.name
        if settings.pole is not None:
            settings.pole.name = chain.pole


def add_props() -> None:
    """Add balls that show the targets, and the box that the hands hold."""
    red = scenery.material("Target", (0.9, 0.02, 0.03), glow=0.35)
    for chain, radius in zip(CHAINS, (0.075, 0.05, 0.05, 0.055, 0.055), strict=True):
        scenery.ball(f"{chain.name} ball", radius, (0.0, 0.0, 0.0), red).parent = bpy.data.objects[chain.name]
    box = scenery.box("Box", (0.34, 0.30, 0.26), (0.0, 0.0, 0.0), scenery.material("Box", (0.55, 0.36, 0.16), 0.7))
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        hand = bpy.data.objects[f"{side} arm"]
        hand.parent = box
        hand.location = (0.215 * sign, 0.05, -0.05)
        bpy.data.objects[f"{side} elbow"].location = (0.9 * sign, 0.5, 0.7)
        bpy.data.objects[f"{side} knee"].location = (0.16 * sign, -1.4, 0.6)


def animate(rig: bpy.types.Object) -> None:
    """Animate a loop: squat to the box, lift it, step aside with it, swing it round, step back."""
    keyed(
        "Box",
        {
            1: (0.0, -0.36, 1.20),
            25: (0.0, -0.48, 0.58),
            48: (0.05, -0.24, 2.02),
            62: (0.62, -0.30, 1.32),
            74: (0.52, -0.36, 1.05),
            92: (-0.25, -0.44, 1.25),
            120: (0.0, -0.36, 1.20),
        },
    )
    keyed(
        "Box",
        {
            1: (0, 0, 0),
            25: (0, 0, 0),
            48: (-0.5, 0, 0),
            62: (0, 0.1, 0.75),
            74: (0, 0.1, 0.7),
            92: (0, 0, -0.5),
            120: (0, 0, 0),
        },
        "rotation_euler",
    )
    keyed(
        "Spine",
        {
            1: (0.0, 0.0, 1.60),
            25: (0.0, -0.18, 1.0),
            48: (0.06, 0.03, 1.58),
            62: (0.34, -0.02, 1.46),
            74: (0.42, -0.10, 1.31),
            92: (0.0, -0.05, 1.50),
            120: (0.0, 0.0, 1.60),
        },
    )
    step = {1: (0.13, 0.02, 0.085), 40: (0.13, 0.02, 0.085), 47: (0.32, -0.02, 0.26), 54: (0.52, -0.04, 0.085)}
    back = {92: (0.52, -0.04, 0.085), 100: (0.32, 0.0, 0.24), 108: (0.13, 0.02, 0.085), 120: (0.13, 0.02, 0.085)}
    keyed("Left leg", step | back)
    keyed("Right leg", {1: (-0.13, 0.02, 0.085), 120: (-0.13, 0.02, 0.085)})
    keyed("Left knee", {40: (0.16, -1.4, 0.6), 54: (0.85, -1.3, 0.6), 92: (0.85, -1.3, 0.6), 108: (0.16, -1.4, 0.6)})
    hips = {
        1: (0.0, 0.02, -0.03),
        25: (0.0, 0.24, -0.43),
        40: (-0.02, 0.0, -0.04),
        48: (0.02, 0.0, -0.05),
        62: (0.22, 0.0, -0.14),
        74: (0.30, 0.05, -0.28),
        92: (0.10, 0.0, -0.10),
        108: (-0.01, 0.01, -0.05),
        120: (0.0, 0.02, -0.03),
    }
    # The animator's own keys under the IK: the position of the hips and the twist of the waist.
    spine, waist = rig.pose.bones["spine"], rig.pose.bones["spine.002"]
    to_bone = spine.bone.matrix_local.to_3x3().inverted()
    for frame, offset in hips.items():
        spine.location = to_bone @ Vector(offset)
        spine.keyframe_insert("location", frame=frame)
    for frame, angle in {1: 0.0, 40: 0.0, 62: 0.5, 74: 0.45, 92: -0.35, 120: 0.0}.items():
        waist.rotation_quaternion = Quaternion((0.0, 1.0, 0.0), angle)
        waist.keyframe_insert("rotation_quaternion", frame=frame)


def keyed(name: str, values: dict[int, Point], path: str = "location") -> None:
    """Key a property of an object."""
    ob = bpy.data.objects[name]
    for frame, value in values.items():
        setattr(ob, path, value)
        ob.keyframe_insert(path, frame=frame)


def settings_of(rig: bpy.types.Object, chain: Chain) -> Any:
    """Return the extension's settings of a chain."""
    bone: Any = rig.pose.bones[chain.tip]
    return bone.ik_addon


def set_live(rig: bpy.types.Object, live: bool) -> None:
    """Switch live solving on or off."""
    settings: Any = rig
    settings.ik_addon.live = live


# ---- measurements


def play(rig: bpy.types.Object) -> Playback:
    """Play all frames and record where the bones are."""
    reports = importlib.import_module(f"{blender.PACKAGE}.ik_addon.live.reports")
    errors: dict[str, list[float]] = {chain.name: [] for chain in CHAINS}
    passes: dict[str, list[int]] = {chain.name: [] for chain in CHAINS}
    joints = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        joints.append([posed.matrix_world @ bone.head for bone in posed.pose.bones])
        for chain in CHAINS:
            errors[chain.name].append(tip_error(posed, chain))
            report = reports.get(rig, chain.tip)
            passes[chain.name].append(0 if report is None else report.iterations)
    return Playback(
        errors={name: max(found) for name, found in errors.items()},
        iterations={name: statistics.mean(found) for name, found in passes.items()},
        joints=np.array(joints, dtype=np.float64),
    )


def tip_error(posed: bpy.types.Object, chain: Chain) -> float:
    """Return the distance between a chain's tip and its target in an evaluated rig, in chain lengths."""
    tip = posed.pose.bones[chain.tip]
    target = bpy.data.objects[chain.name].evaluated_get(bpy.context.evaluated_depsgraph_get())
    length = sum(bone.length for bone in [tip, *tip.parent_recursive][: chain.length])
    return (posed.matrix_world @ tip.tail - target.matrix_world.translation).length / length


def frame_time(rig: bpy.types.Object, chains: Sequence[Chain]) -> float:
    """Return the median time in milliseconds of a frame change with these chains solved live."""
    for chain in CHAINS:
        settings_of(rig, chain).enabled = chain in chains
    set_live(rig, bool(chains))
    times = []
    for frame in FRAMES:
        start = time.perf_counter()
        bpy.context.scene.frame_set(frame)
        times.append(1000.0 * (time.perf_counter() - start))
    return statistics.median(times)


def complaints(live: Playback, baked: Playback) -> Iterator[str]:
    """Yield a sentence for each thing that went wrong."""
    for seen, how in ((live, "Live"), (baked, "Baked")):
        for name, error in seen.errors.items():
            if not error <= WORST_ERROR:
                yield f"{how}, the chain '{name}' missed its target by {error:.1e} of its length."
    difference = np.abs(live.joints - baked.joints).max()
    if not difference <= WORST_BAKE:
        yield f"A joint is {difference:.1e} m away from where it was before the bake."


def show(table: Sequence[Sequence[str]]) -> None:
    """Print rows as a table, with the first row as the header."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print(
            " | ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        )
        if row is table[0]:
            print("-+-".join("-" * width for width in widths))


# ---- pictures


def render() -> None:
    """Render the stills and combine the middle of each into one picture."""
    scene = bpy.context.scene
    strips = []
    for frame in STILLS:
        scene.frame_set(frame)
        scene.render.filepath = str(BUILD / f"demo_{frame:03}.png")
        with quiet():
            bpy.ops.render.render(write_still=True)
        pixels = load(scene.render.filepath)
        cut = pixels.shape[1] // 4
        strips.append(pixels[:, cut:-cut])
    save(np.concatenate(strips, axis=1), BUILD / "demo.png")


def load(path: str) -> NDArray[np.float32]:
    """Return the pixels (height, width, 4) of a picture."""
    image = bpy.data.images.load(path)
    width, height = image.size
    pixels = np.empty(width * height * 4, dtype=np.float32)
    image.pixels.foreach_get(pixels)
    bpy.data.images.remove(image)
    return pixels.reshape(height, width, 4)


def save(pixels: NDArray[np.float32], path: Path) -> None:
    """Write pixels (height, width, 4) as a picture."""
    height, width, _channels = pixels.shape
    image = bpy.data.images.new(path.stem, width, height)
    image.pixels.foreach_set(np.ascontiguousarray(pixels).ravel())
    image.filepath_raw, image.file_format = str(path), "PNG"
    image.save()
    bpy.data.images.remove(image)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide what Blender prints on its own, such as a line for each sample."""
    sys.stdout.flush()
    terminal = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(terminal, 1)
            os.close(terminal)


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="make demo", description="Run the demo.")
    parser.add_argument("--samples", type=int, default=24, help="how often each pixel is sampled; more is smoother")
    options = parser.parse_args()
    blender.enable()
    rig = new_scene()
    scene = bpy.context.scene
    set_live(rig, True)
    live = play(rig)
    idle = frame_time(rig, ())
    times = {chain.name: frame_time(rig, (chain,)) - idle for chain in CHAINS}
    together = frame_time(rig, CHAINS) - idle
    OPERATORS.ik_addon.bake()
    set_live(rig, False)
    baked = play(rig)

    dress(rig)
    scene.cycles.samples = options.samples
    scene.frame_set(FRAMES[0])
    bpy.ops.wm.save_as_mainfile(filepath=str(BUILD / "demo.blend"), compress=True)
    render()

    table = [("chain", "frames", "largest error", "mean iterations", "ms a frame")]
    for name, error in live.errors.items():
        table.append((name, f"{len(FRAMES)}", f"{error:.1e}", f"{live.iterations[name]:.1f}", f"{times[name]:.2f}"))
    table.append(("all at once", f"{len(FRAMES)}", f"{max(live.errors.values()):.1e}", "", f"{together:.2f}"))
    print()
    show(table)
    print(f"Errors are in chain lengths; the milliseconds come on top of the {idle:.2f} that a frame takes without IK.")
    difference = np.abs(live.joints - baked.joints).max()
    print(
        f"Baked: largest error {max(baked.errors.values()):.1e}, joints within {difference:.1g} m of where they were."
    )
    print("Look at build/demo.blend, build/demo.png and", ", ".join(f"build/demo_{frame:03}.png" for frame in STILLS))
    wrong = list(complaints(live, baked))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


def _addon_utils() -> Any:
    return importlib.import_module("addon_utils")


if __name__ == "__main__":
    blender.leave(main())
