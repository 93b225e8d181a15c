"""Bake chains to keyframes. Scripts use the names exported here."""

from ..core.translation.sentences import UserError
from .bake_report import BakeReport
from .baking import bake, bake_stepwise
from .scene import chosen_tips, frame_range, frames_between

__all__ = ["BakeReport", "UserError", "bake", "bake_stepwise", "chosen_tips", "frame_range", "frames_between"]
