"""Bake chains to keyframes. Scripts use the names exported here."""

from .bake_report import BakeReport
from .baking import bake, steps
from .selection import BakeError, chosen_tips, frame_range, frames_between

__all__ = ["BakeError", "BakeReport", "bake", "chosen_tips", "frame_range", "frames_between", "steps"]
