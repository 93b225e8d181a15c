"""Inverse kinematics on plain arrays, without Blender: `solve` turns a `Problem` into a `Solution`."""

from .problem import Goal, Limits, OutOfReach, Problem, Solution, Solver, Status
from .solver import check, pole_angle, solve

__all__ = ["Goal", "Limits", "OutOfReach", "Problem", "Solution", "Solver", "Status", "check", "pole_angle", "solve"]
