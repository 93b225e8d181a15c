"""Properties of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bpy.props import FloatProperty


def asked(kind: Callable[..., Any], name: str, description: str, **rest: Any) -> Any:
    """Return a property that starts from its default each time, not from what was chosen last."""
    return kind(name=name, description=description, options={"SKIP_SAVE"}, **rest)


def given(kind: Callable[..., Any], name: str, description: str, **rest: Any) -> Any:
    """Return a property that buttons and scripts set, and that users don't see."""
    return kind(name=name, description=description, options={"HIDDEN", "SKIP_SAVE"}, **rest)


def seconds(name: str, description: str, default: float, **rest: Any) -> Any:
    """Return a property for a time, usually below a second."""
    return FloatProperty(
        name=name,
        description=description,
        subtype="TIME",
        unit="TIME_ABSOLUTE",
        default=default,
        min=0.0,
        soft_max=1.0,
        **rest,
    )
