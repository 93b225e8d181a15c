"""Characters in playback: the cases, and how their frames are timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

import bpy
import numpy as np

from .chains import is_reached
from .characters import BLENDER, FRAMES, NOBODY, OURS, PERIOD, Character
from .floor import Poses, finished, writing_after, writing_before
from .timing import OF_THE_FLOOR, Case, Run, steps

WARM = 3
"""Frames played before timing begins."""
LEAST = 20
"""Frames that are timed no matter how slow they are; a whole period if some are out of reach."""


class Scene(Protocol):
    """A scene with armatures that can be solved in each way; hashable."""

    @property
    def solved(self) -> list[str]:
        """The bones of each armature that are posed by IK."""

    @property
    def tips(self) -> list[str]:
        """The tips of the chains that have to reach their targets."""

    @property
    def keyed_limbs(self) -> bool:
        """Whether the bones posed by IK are keyed."""

    @property
    def presets(self) -> bool:
        """Whether targets are out of reach on a third of the frames."""

    def build(self, solver: str) -> list[bpy.types.Object]:
        """Return the armatures of a new scene, solved by one of `OURS`, `BLENDER` and `NOBODY`."""


@dataclass(frozen=True)
class Play:
    """A scene, and the order in which its frames are played."""

    scene: Scene
    shuffled: bool = False
    again: bool = False
    """All frames have been played before."""

    def run(self) -> Run:
        """Time the frames of the open file, in milliseconds."""
        frames = list(range(1 + WARM, FRAMES + 1))
        show = bpy.context.scene.frame_set
        for frame in range(1, 1 + WARM):
            show(frame)
        if self.again:
            for frame in frames:
                show(frame)
            show(1 + WARM - 1)
        if self.shuffled:
            np.random.default_rng(0).shuffle(frames)
        return steps((partial(show, frame) for frame in frames), least=PERIOD if self.scene.presets else LEAST)


def ours(play: Play, _number: int) -> Run:
    """Play with this add-on."""
    armatures = play.scene.build(OURS)
    run = play.run()
    assert all(is_reached(ob, tip) for ob in armatures for tip in play.scene.tips), "a target was not reached"
    return run


def blender(play: Play, _number: int) -> Run:
    """Play with Blender's constraints."""
    play.scene.build(BLENDER)
    return play.run()


Writing = Callable[[Poses], AbstractContextManager[None]]


def floor(play: Play, writing: Writing, _number: int) -> Run:
    """Play the pose that Blender's constraints found before."""
    poses = solution(play.scene)
    play.scene.build(NOBODY)
    with writing(poses):
        return play.run()


@cache
def solution(scene: Scene) -> Poses:
    """Return the result of Blender's constraints for each armature of a scene."""
    return {ob.name: finished(ob, scene.solved, range(FRAMES + 1)) for ob in scene.build(BLENDER)}


def case(play: Play, aim: float | None, of_the_floor: float = OF_THE_FLOOR) -> Case:
    """Return the case of a scene that is played."""
    return Case(
        "ms",
        partial(ours, play),
        partial(blender, play),
        partial(floor, play, writing_before),
        partial(floor, play, writing_after),
        is_keyed=play.scene.keyed_limbs,
        aim=aim,
        of_the_floor=of_the_floor,
    )


CONTROLS = Character(controls=True)
CASES = {
    "character-keyed": case(Play(Character()), 1.9),
    "character-body": case(Play(Character(keyed_limbs=False)), 1.9),
    "character-controls": case(Play(CONTROLS), 1.9),
    "character-presets": case(Play(Character(controls=True, presets=True)), 2.6),
    "character-skinned": case(Play(Character(keyed_limbs=False, skinned=True)), 1.4),
    "character-default": case(Play(Character(set_up=True)), 2.6),
    "characters-10": case(Play(Character(count=10)), 2.0),
    "scrub": case(Play(CONTROLS, shuffled=True), 2.0, 1.6),
    "loop": case(Play(CONTROLS, again=True), 1.5, 1.0),
}
