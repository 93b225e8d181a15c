"""Converting Blender's IK constraints to chains, and back."""
