"""A human body, for all tests of posing."""

from typing import Any

import pytest


@pytest.fixture
def human(rigify: None) -> Any:
    """Return the human metarig with a hand active."""
    import bpy

    from tests.reliability.states import activate
    from tests.rigs_generated import armature_of

    ob = armature_of("human")
    activate(ob, "hand.L")
    bpy.context.view_layer.update()
    return ob
