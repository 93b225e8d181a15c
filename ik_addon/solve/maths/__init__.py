"""Vectors, rotations, cones and matrix products that all solvers use."""
