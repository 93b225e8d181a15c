"""A bake in parts: several Blender processes each solve some of the frames, and one joins and keys them."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..bake.command_line import CommandError
from ..bake.sampling import Frames, Method
from ..bake.solved import Solved

FORMAT = 1
"""Version of the file format of parts."""
ABOUT = "about"
"""Name of the entry of a file that describes its arrays."""


@dataclass(frozen=True)
class Which:
    """One of several parts of the frames."""

    number: int
    """Counts from 1."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Which:
        """Read `2/4`.

        Raises:
            ValueError: the text is not of this form.
        """
        number, of = (int(word) for word in text.split("/"))
        if not 1 <= number <= of:
            raise ValueError(text)
        return cls(number, of)

    def frames(self, frames: Sequence[int]) -> list[int]:
        """Return the frames that belong to this part."""
        start, end = (len(frames) * i // self.of for i in (self.number - 1, self.number))
        return list(frames[start:end])


@dataclass(frozen=True)
class SolvedPart:
    """Solved frames of an armature."""

    armature: str
    tips: list[str]
    """Names of the tip bones of the keyed chains."""
    frames: list[int]
    method: str
    """Name of the `Method` by which they were sampled."""
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class RecordedFrames(Frames):
    """Frames that are solved and recorded."""

    tips: list[str]
    record: list[SolvedPart]
    """Receives the last solve."""

    def solve(self, solved: Solved, method: Method) -> Generator[float, None, bool]:
        """Solve and record all frames; yields progress (0 to 1)."""
        if not (yield from super().solve(solved, method)):
            return False
        arrays = {name: array.copy() for name, array in solved.arrays().items()}
        self.record[:] = [SolvedPart(self.ob.name_full, self.tips, self.numbers, method.name, arrays)]
        return True


@dataclass(frozen=True, kw_only=True)
class JoinedFrames(Frames):
    """Frames that were already solved in parts."""

    parts: Sequence[SolvedPart]
    """The parts, in the order of their frames."""

    def played(self, method: Method) -> list[int]:
        """Return indices of the frames to play after keying: those whose poses the parts contain."""
        if method is not self._method:
            return super().played(method)
        return [start + index for start, part in self._starts() for index in part.arrays["played"].tolist()]

    def solve(self, solved: Solved, method: Method) -> Generator[float, None, bool]:
        """Take the frames from their parts; yields progress (0 to 1)."""
        if method is not self._method:
            if method is Method.SCENE:
                raise CommandError(
                    f"'{self.ob.name_full}' doesn't play as the parts were solved. Solve all parts again"
                )
            return False
        for start, part in self._starts():
            try:
                solved.take(start, part.arrays)
            except (KeyError, ValueError) as error:
                raise CommandError(
                    f"The parts were solved with different chains on '{self.ob.name_full}'. Solve all parts again"
                ) from error
        yield 1.0
        return True

    @property
    def _method(self) -> Method:
        """The most thorough sampling method among the parts."""
        order = list(Method)
        return max((Method[part.method] for part in self.parts), key=order.index)

    def _starts(self) -> list[tuple[int, SolvedPart]]:
        """Return the parts, each with the index of its first frame."""
        starts = np.cumsum([0, *(len(part.frames) for part in self.parts)])
        return list(zip(starts.tolist(), self.parts, strict=False))


def write(path: Path, which: Which, parts: Sequence[SolvedPart]) -> None:
    """Write the solved frames of each armature."""
    about = {
        "format": FORMAT,
        "part": [which.number, which.of],
        "armatures": [
            {"armature": part.armature, "tips": part.tips, "frames": part.frames, "method": part.method}
            for part in parts
        ],
    }
    arrays = {f"{i} {name}": array for i, part in enumerate(parts) for name, array in part.arrays.items()}
    arrays[ABOUT] = np.array(json.dumps(about))
    numpy: Any = np  # the stubs take arrays for options
    numpy.savez(path, **arrays)


def read_all(paths: Sequence[Path]) -> list[list[SolvedPart]]:
    """Read the parts in files; return them by armature, each in the order of its frames.

    Raises:
        CommandError: a file is not a part, or the files are not the parts of one bake.
    """
    found: dict[int, tuple[Path, list[SolvedPart]]] = {}
    of = 0
    for path in paths:
        which, parts = _read(path)
        if found and which.of != of:
            raise CommandError(f"'{path}' is one of {which.of} parts, and '{paths[0]}' is one of {of}")
        if which.number in found:
            raise CommandError(f"'{found[which.number][0]}' and '{path}' are both part {which.number} of {which.of}")
        of, found[which.number] = which.of, (path, parts)
    missed = [str(number) for number in range(1, of + 1) if number not in found]
    if missed:
        raise CommandError(f"Missing parts (of {of}): {', '.join(missed)}")
    ordered = [found[number] for number in sorted(found)]
    first = [(part.armature, part.tips) for part in ordered[0][1]]
    for path, parts in ordered:
        if [(part.armature, part.tips) for part in parts] != first:
            raise CommandError(f"'{path}' was solved with different armatures or chains from '{ordered[0][0]}'")
    joined = [[parts[i] for _path, parts in ordered] for i in range(len(first))]
    for own in joined:
        frames = [frame for part in own for frame in part.frames]
        if frames != sorted(set(frames)):
            raise CommandError(
                f"The parts of '{own[0].armature}' were solved on different frames. Solve all parts again"
            )
    return joined


def _read(path: Path) -> tuple[Which, list[SolvedPart]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file[ABOUT]))
            if about["format"] != FORMAT:
                raise CommandError(f"'{path}' was written by a different version of the add-on. Solve all parts again")
            arrays = {name: file[name] for name in file.files if name != ABOUT}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadZipFile) as error:
        raise CommandError(f"'{path}' is not a part of a bake: {error}") from error
    parts = []
    for i, own in enumerate(about["armatures"]):
        prefix = f"{i} "
        of_one = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        parts.append(SolvedPart(own["armature"], own["tips"], own["frames"], own["method"], of_one))
    return Which(*about["part"]), parts
