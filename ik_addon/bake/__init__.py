"""Bake chains to keyframes. Scripts use the names exported here."""

from .bake_report import BakeReport
from .baking import bake, bake_stepwise
from .selection import BakeError, chosen_tips, frame_range, frames_between

__all__ = ["BakeError", "BakeReport", "bake", "bake_stepwise", "chosen_tips", "frame_range", "frames_between"]
