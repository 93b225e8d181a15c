"""Memory during playback: an animated limb and a tail of nine bones, both live, on frames and sub-frames."""

import gc
from pathlib import Path

import bpy

from tests import rigs

from .case import begin

STATM = Path("/proc/self/statm")
"""Where Linux reports the memory of a process; on other systems this cannot be measured."""
ALLOWED = 5 * 2**20
WARM_UP = 300


def memory() -> int:
    """Bytes that the process has in memory, after garbage collection."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * 4096


def scene() -> None:
    """Fill an empty scene with the limb and the tail."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 50: (-0.4, 0.7, 1.2), 100: (0.2, -0.5, 0.8)})
    rigs.key(ob, "location", {1: (0.0, 0.0, 0.0), 100: (0.3, 0.0, 0.1)})
    tail = rigs.limb(rigs.bent(9, 0.2), [f"tail{i}" for i in range(9)], name="Tail")
    rigs.chain(tail, "tail8", target, 0)
    for each in (ob, tail):
        each.ik_addon.live = True


def play(frames: int) -> None:
    """Play this many frames, looping over the same hundred."""
    for frame in range(frames):
        bpy.context.scene.frame_set(1 + frame % 100, subframe=0.25 * (frame % 3))


def check_seed(_seed: int, frames: int = 10_000) -> None:
    """Raise AssertionError if memory grows by more than 5 MB during playback."""
    begin()
    scene()
    play(WARM_UP)
    before = memory()
    play(frames)
    grown = memory() - before
    print(f"{grown / 2**20:.2f} MB more after {frames} frames", flush=True)
    assert grown < ALLOWED, f"{grown / 2**20:.1f} MB more after {frames} frames"
