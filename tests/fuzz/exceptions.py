"""What may change the pose from one way to a frame to another, by design, with the reason: nothing else may.

Names are those of `tests.animatable`; `*` stands for anything.
"""

from __future__ import annotations

from tests.animatable import reason

PLAYED, RENDERED, BAKED = "played", "rendered", "baked"
"""Ways to a frame."""

PROPERTIES: dict[str, dict[str, str]] = {
    RENDERED: {
        "objects/*/hide_viewport": "what is disabled in viewports only is there in renders",
        "objects/*/hide_render": "what is disabled in renders only is there in viewports",
    },
}
"""By the way that may differ from playing: properties that may make the difference when they are keyed or driven."""


def excused(way: str, changed: list[str]) -> str | None:
    """Why frames may come out otherwise this way, None where they may not."""
    patterns = PROPERTIES.get(way, {})
    return next((why for why in (reason(patterns, name) for name in changed) if why), None)
