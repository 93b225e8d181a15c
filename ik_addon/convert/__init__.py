"""Blender's IK constraints become chains, and come back."""
