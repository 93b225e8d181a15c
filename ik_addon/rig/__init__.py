"""From Blender's poses to the solvers' arrays, and back."""
