"""Properties whose effect is not compared between ways to a frame, and why; all others that are keyed or driven are.

Names are those of `tests.animatable`. `sessions` finds out by itself what differs even with all chains off.
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
"""Properties that are never animated, and why."""
APART = {
    RENDERED: {
        "objects/*/hide_viewport": "it is meant for viewports alone",
        "objects/*/hide_render": "it is meant for renders alone",
    },
}
"""Properties that are animated but not compared on some ways, and why."""


def is_tried(prop: Animatable) -> bool:
    """Whether a property is keyed and driven at all."""
    return reason(NEVER, prop.change) is None


def excused(way: str, changes: Iterable[str]) -> str | None:
    """Return why frames may differ this way if these properties are animated; None if they may not."""
    reasons = (reason(APART.get(way, {}), change) for change in changes)
    return next((why for why in reasons if why), None)
