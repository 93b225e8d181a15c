"""Files that say what a body does on frames: which bones go where, and which pins hold. See docs/command_line.md."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..bake.selection import FIRST, LAST

LARGEST = 1e30
"""Numbers must be smaller than this."""

Pins = dict[str, frozenset[str]]
"""Pins by bone name: LOCATION, ROTATION or both."""


class ScriptError(Exception):
    """The file is not a valid script; the message says what is wrong, and where."""


class Space(Enum):
    """The space of places and orientations."""

    WORLD = "WORLD"
    ARMATURE = "ARMATURE"


class Root(Enum):
    """Which bone moves freely if none is named."""

    FOUND = "FOUND"
    """The one that Pose Body finds."""
    NONE = "NONE"


@dataclass(frozen=True)
class Goal:
    """Where a bone goes, how it turns, or both."""

    bone: str
    location: tuple[float, ...] | None
    """None: anywhere."""
    rotation: tuple[float, ...] | None
    """A quaternion; None: any."""
    use_tail: bool
    """Whether the tail of the bone goes there, instead of its head."""


@dataclass(frozen=True)
class Frame:
    """Goals and pins of a frame."""

    number: int
    goals: tuple[Goal, ...]
    pins: Pins | None
    """None: the pins of Pose Body."""


@dataclass(frozen=True)
class Script:
    """What the body of an armature does on some frames, in ascending order."""

    armature: str | None
    """None: the only armature of the scene."""
    space: Space
    root: str | Root
    frames: tuple[Frame, ...]

    @property
    def bones(self) -> set[str]:
        """The names of all bones in it."""
        found = {goal.bone for frame in self.frames for goal in frame.goals}
        found.update(*(frame.pins or () for frame in self.frames))
        return found if isinstance(self.root, Root) else {*found, self.root}


def read(path: Path) -> Script:
    """Read a script from a file.

    Raises:
        ScriptError: the file can't be read, or is not a valid script.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScriptError(f"'{path}' can't be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, or nested too deeply
        raise ScriptError(f"'{path}' is not JSON: {error}") from error
    try:
        return _script(content)
    except ScriptError as error:
        raise ScriptError(f"'{path}': {error}") from None


def _script(content: Any) -> Script:
    where = "the file"
    own = _fields(content, where, ("frames",), ("armature", "space", "root", "pins"))
    pins = _pins(own["pins"], "pins") if "pins" in own else None
    frames = [_frame(each, f"frames[{i}]", pins) for i, each in enumerate(_list(own["frames"], "frames"))]
    if not frames:
        raise ScriptError("'frames' is empty. Add at least one frame")
    for i in range(1, len(frames)):
        before, after = frames[i - 1].number, frames[i].number
        if after <= before:
            raise ScriptError(f"frames[{i}] (frame {after}) follows frame {before}. List frames in ascending order")
    root: str | Root = Root.FOUND
    if "root" in own:
        root = Root.NONE if own["root"] is None else _text(own["root"], "root", "null, or the name of a bone")
    armature = _text(own["armature"], "armature", "the name of an armature object") if "armature" in own else None
    space = own.get("space", Space.WORLD.value)
    if space not in [each.value for each in Space]:
        raise ScriptError(f'\'space\' must be "WORLD" or "ARMATURE", not {_shown(space)}')
    return Script(armature, Space(space), root, tuple(frames))


def _frame(content: Any, where: str, pins: Pins | None) -> Frame:
    own = _fields(content, where, ("frame",), ("goals", "pins"))
    number = own["frame"]
    if not isinstance(number, int) or isinstance(number, bool) or not FIRST <= number <= LAST:
        raise ScriptError(f"{where}.frame must be a whole number from {FIRST} to {LAST}, not {_shown(number)}")
    goals = [_goal(each, f"{where}.goals[{i}]") for i, each in enumerate(_list(own.get("goals", []), f"{where}.goals"))]
    ends = [(goal.bone, goal.use_tail) for goal in goals]
    _no_twice([f"{'tail' if tail else 'head'} of '{bone}'" for bone, tail in ends], f"{where}.goals")
    return Frame(number, tuple(goals), _pins(own["pins"], f"{where}.pins") if "pins" in own else pins)


def _goal(content: Any, where: str) -> Goal:
    own = _fields(content, where, ("bone",), ("location", "rotation", "use_tail"))
    location = rotation = None
    if own.get("location") is not None:
        location = _numbers(own["location"], f"{where}.location", 3)
    elif own.get("rotation") is None:
        raise ScriptError(f"{where} has neither a 'location' nor a 'rotation'")
    elif "use_tail" in own:
        raise ScriptError(f"{where} has 'use_tail', but no 'location' for the tail")
    if own.get("rotation") is not None:
        rotation = _numbers(own["rotation"], f"{where}.rotation", 4)
        length = math.hypot(*rotation)
        if not 1e-6 < length < math.inf:
            raise ScriptError(f"{where}.rotation must be a nonzero quaternion, not {_shown(own['rotation'])}")
        rotation = tuple(each / length for each in rotation)
    return Goal(
        _text(own["bone"], f"{where}.bone", "the name of a bone"),
        location,
        rotation,
        _flag(own.get("use_tail", False), f"{where}.use_tail"),
    )


def _pins(content: Any, where: str) -> Pins:
    found = []
    for i, each in enumerate(_list(content, where)):
        at = f"{where}[{i}]"
        own = _fields(each, at, ("bone",), ("location", "rotation"))
        flags = {name.upper() for name in ("location", "rotation") if _flag(own.get(name, True), f"{at}.{name}")}
        found.append((_text(own["bone"], f"{at}.bone", "the name of a bone"), frozenset(flags)))
    _no_twice([f"pin of '{bone}'" for bone, _flags in found], where)
    return dict(found)


# ---- the fields of any file


def _fields(content: Any, where: str, needed: Collection[str], more: Collection[str]) -> dict[str, Any]:
    """Return an object, checked to have the needed fields and no unknown ones."""
    _check(isinstance(content, dict), where, "an object in braces", content)
    for name in needed:
        if name not in content:
            raise ScriptError(f"{where} has no '{name}'")
    for name in content:
        if name not in (*needed, *more):
            known = ", ".join(f"'{each}'" for each in (*needed, *more))
            raise ScriptError(f"{where} has an unknown field '{name}'. Known fields: {known}")
    return dict(content)


def _list(content: Any, where: str) -> list[Any]:
    _check(isinstance(content, list), where, "a list in brackets", content)
    return list(content)


def _text(content: Any, where: str, what: str) -> str:
    _check(isinstance(content, str) and content, where, what, content)
    return str(content)


def _flag(content: Any, where: str) -> bool:
    _check(isinstance(content, bool), where, "true or false", content)
    return bool(content)


def _numbers(content: Any, where: str, count: int) -> tuple[float, ...]:
    fits = isinstance(content, list) and len(content) == count and all(_is_number(each) for each in content)
    _check(fits, where, f"a list of {count} finite numbers", content)
    return tuple(float(each) for each in content)


def _is_number(content: Any) -> bool:
    return isinstance(content, int | float) and not isinstance(content, bool) and abs(content) < LARGEST


def _check(fits: object, where: str, what: str, content: Any) -> None:
    if not fits:
        raise ScriptError(f"{where} must be {what}, not {_shown(content)}")


def _no_twice(names: list[str], where: str) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ScriptError(f"{where} has the {name} twice")


def _shown(content: Any) -> str:
    shown = json.dumps(content)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
