"""Vectors, rotations, cones, and products of matrices: what all solvers compute with."""
