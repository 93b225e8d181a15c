"""Auto keying, for all tests of targets."""

from collections.abc import Iterator
from typing import Any

import pytest

PREFERENCES = ("use_keyframe_insert_available", "use_auto_keyframe_insert_needed", "use_visual_keying")


@pytest.fixture
def auto_keying() -> Iterator[Any]:
    """Turn auto keying on, with all of the user's preferences for it off; return these."""
    import bpy

    edit = bpy.context.preferences.edit
    before = {name: getattr(edit, name) for name in PREFERENCES}
    for name in PREFERENCES:
        setattr(edit, name, False)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    yield edit
    for name, value in before.items():
        setattr(edit, name, value)
