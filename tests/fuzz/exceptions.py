"""What is not compared between ways to a frame, with the reason: everything else that is keyed or driven is.

Names are those of `tests.animatable`. What differs with all chains off as well is found out by trying, see `sessions`.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.animatable import Animatable, reason

PLAYED, RENDERED, BAKED = "played", "rendered", "baked"
"""Ways to a frame."""

NEVER = {
    "*/is_runtime_data": "what Blender makes while it runs is not saved with the file",
    "objects/*/parent_type": "Blender builds its relations from it, and only where it is set by hand",
    "*.use_tail": "Blender builds the order in which bones are evaluated from it, and only where it is set by hand",
    "*_space=CUSTOM": "Blender looks for the object of the space where it is set by hand, and not when it is animated",
    "armatures/*/pose_position": "Blender evaluates no pose for it: one that nothing else moves stays as it was",
    "*.set_inverse_pending": "a button: Blender changes the constraint once and sets it back",
    "*/animation_data.*": "it chooses what animates everything else, so it is another animation",
    "*.matrix[*": "Blender writes it through to the channels, which are keyed by themselves",
}
"""What is not animated, and why."""
APART = {
    RENDERED: {
        "objects/*/hide_viewport": "it is meant for viewports alone",
        "objects/*/hide_render": "it is meant for renders alone",
    },
}
"""What is animated but not compared on some ways, and why."""


def is_tried(prop: Animatable) -> bool:
    """Whether a property is keyed and driven at all."""
    return reason(NEVER, prop.change) is None


def excused(way: str, changes: Iterable[str]) -> str | None:
    """Why frames may come out otherwise this way where these properties are animated; None where they may not."""
    reasons = (reason(APART.get(way, {}), change) for change in changes)
    return next((why for why in reasons if why), None)
