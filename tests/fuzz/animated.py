"""Each property of a character that can be animated: keyed and driven, one per seed."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

from tests.animatable import Animatable
from tests.reliability.test_animated_settings import Character, check_property, in_file
from tests.renders import registered


@cache
def _cases() -> tuple[Character, list[tuple[Animatable, bool]], Path]:
    """The character, its properties (each keyed and driven) in random order, and a folder for files."""
    folder = Path(tempfile.mkdtemp(prefix="animated-"))
    with registered():
        character = in_file(folder)
    cases = [(prop, driven) for driven in (False, True) for prop in character.compared(driven)]
    random.Random(0).shuffle(cases)
    return character, cases, folder


def check_seed(seed: int) -> None:
    """Key or drive one property and compare all ways to its poses; as many seeds as there are cases try them all."""
    character, cases, folder = _cases()
    prop, driven = cases[seed % len(cases)]
    with registered():
        wrong = check_property(character, prop, folder, driven)
    assert not wrong, f"{prop.change}, {'driven' if driven else 'keyed'}: {wrong}"
