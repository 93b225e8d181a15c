"""Characters in playback: the cases, and how their frames are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial

import bpy
import numpy as np

from .chains import is_reached
from .characters import BLENDER, FRAMES, LIMBS, NOBODY, OURS, PERIOD, Character, build
from .floor import Finished, finished, writing_after, writing_before
from .timing import OF_THE_FLOOR, Case, Run, median_step, steps

WARM = 3
"""Frames played before timing begins."""
LEAST = 20
"""Frames that are timed no matter how slow they are; a whole period if some are out of reach."""


@dataclass(frozen=True)
class Play:
    """A character, and the order in which its frames are played."""

    character: Character
    shuffled: bool = False
    again: bool = False
    """All frames have been played before."""

    def times(self) -> list[float]:
        """Return the milliseconds that each frame of the open file takes."""
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
        return steps((partial(show, frame) for frame in frames), least=PERIOD if self.character.presets else LEAST)


def ours(play: Play, _number: int) -> Run:
    """Play with this add-on."""
    armatures = build(play.character, OURS)
    took = play.times()
    if not play.character.presets:
        tips = [limb.end if play.character.set_up else limb.lower for limb in LIMBS]
        assert all(is_reached(ob, tip) for ob in armatures for tip in tips), "a target was not reached"
    return median_step(took)


def blender(play: Play, _number: int) -> Run:
    """Play with Blender's constraints."""
    build(play.character, BLENDER)
    return median_step(play.times())


Writing = Callable[[Mapping[str, Finished]], AbstractContextManager[None]]


def floor(play: Play, writing: Writing, _number: int) -> Run:
    """Play the pose that Blender's constraints found before."""
    poses = solution(play.character)
    build(play.character, NOBODY)
    with writing(poses):
        return median_step(play.times())


@cache
def solution(character: Character) -> dict[str, Finished]:
    """Return the result of Blender's constraints for each armature of a scene, by name."""
    armatures: Sequence[bpy.types.Object] = build(character, BLENDER)
    return {ob.name: finished(ob, character.solved, range(FRAMES + 1)) for ob in armatures}


def case(play: Play, aim: float | None, of_the_floor: float = OF_THE_FLOOR) -> Case:
    """Return the case of a character."""
    return Case(
        "ms",
        partial(ours, play),
        partial(blender, play),
        partial(floor, play, writing_before),
        partial(floor, play, writing_after),
        is_keyed=play.character.keyed_limbs,
        aim=aim,
        of_the_floor=of_the_floor,
    )


CONTROLS = Character(controls=True)
CASES = {
    "character-keyed": case(Play(Character()), 2.0),
    "character-body": case(Play(Character(keyed_limbs=False)), 1.6),
    "character-controls": case(Play(CONTROLS), 2.0),
    "character-presets": case(Play(Character(controls=True, presets=True)), 2.2),
    "character-skinned": case(Play(Character(keyed_limbs=False, skinned=True)), 1.5),
    "character-default": case(Play(Character(set_up=True)), 2.2),
    "characters-10": case(Play(Character(count=10)), 1.8),
    "character-in-set": case(Play(Character(keyed_limbs=False, others=5000)), None),
    "scrub": case(Play(CONTROLS, shuffled=True), 2.6, 1.6),
    "loop": case(Play(CONTROLS, again=True), None, 1.0),
}
