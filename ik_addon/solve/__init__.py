"""Inverse kinematics on plain arrays, without Blender: `solve` turns a `Problem` into a `Solution`."""

from .body.posing import Poser, pose_body
from .body.problem import Body, Grab, Pin, PosedBody
from .problem import Goal, Limits, OutOfReach, Problem, Solution, Solver, Status
from .solver import Known, check, pole_angle, solve

__all__ = [
    "Body",
    "Goal",
    "Grab",
    "Known",
    "Limits",
    "OutOfReach",
    "Pin",
    "PosedBody",
    "Poser",
    "Problem",
    "Solution",
    "Solver",
    "Status",
    "check",
    "pole_angle",
    "pose_body",
    "solve",
]
