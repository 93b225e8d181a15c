"""Every operator, a drag and edits between them, undone and redone in random order: each step restores its state."""

from __future__ import annotations

import contextlib
from pathlib import Path

import bpy

from tests.conftest import Addon
from tests.reliability.test_undo_random import ConfusedError, in_any_order
from tools import blender


def check_seed(seed: int) -> None:
    """Make, undo and redo random edits, and compare each state with the one when it was made.

    Nothing is known where Blender confuses objects, see docs/reliability.md.
    """
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with contextlib.suppress(ConfusedError):
        in_any_order(Addon(blender.PACKAGE, Path()), seed)
