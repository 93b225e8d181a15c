"""Chains to keyframes: in Blender, from the command line, and what is told of it. Scripts call what stands here."""

from .baking import BakeError, bake, chosen_tips, frame_range, frames_between, steps

__all__ = ["BakeError", "bake", "chosen_tips", "frame_range", "frames_between", "steps"]
