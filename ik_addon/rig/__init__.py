"""The road between Blender's poses and the solvers' arrays."""
