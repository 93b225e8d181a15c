"""The solvers alone, without Blender's evaluation of a rig."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import bpy
import numpy as np

from ik_addon.solve import Limits, Problem, solve
from ik_addon.solve.problem import Floats
from tests import rigs
from tests.solve.chains import aim, make_chains

from .blender_ik import BlenderRig
from .chains import Work, build
from .drag import LEAST, POLE, Drag
from .timing import Case, Measure, Run, steps

TOLERANCE = 1e-4


def many(chains: int, bones: int, limits: float | None = None, _number: int = 0) -> Run:
    """Return the microseconds per chain for many chains at once: the mean of five solves after the first.

    Blender's time is a mean over many too, see `blender_alone`.
    """
    rng = np.random.default_rng(1)
    problem = replace(aim(make_chains(rng, chains, bones), rng, 0.15, 0.97), tolerance=TOLERANCE)
    if limits is not None:
        problem = replace(problem, limits=_limits(problem, math.radians(limits)))
    solve(problem)
    start = time.perf_counter()
    for _ in range(5):
        solve(problem)
    return Run(1e6 * (time.perf_counter() - start) / (5 * chains))


def _limits(problem: Problem, limit: float) -> Limits:
    bones = problem.frames.shape[1]
    ranges = np.tile([-limit, limit], (bones, 3))
    return Limits(np.tile(np.eye(3), (bones, 1, 1)), problem.frames[:, 0], ranges[:, :4], ranges[:, 4:])


def each_bone(bones: int, _number: int = 0) -> Run:
    """Return the microseconds per bone of ten long chains."""
    return Run(many(10, bones).time / bones)


def blender_alone(work: Work, solves: int = 300, _number: int = 0) -> Run:
    """Return the microseconds that Blender's IK on one chain adds to an update."""
    rng = np.random.default_rng(1)
    places = rng.normal(size=(solves, 3))
    places *= (rng.uniform(0.15, 0.97, solves) / np.linalg.norm(places, axis=1))[:, None]
    took = []
    for solver in ("blender", "nobody"):
        ob = build(work, solver)
        target = bpy.data.objects["target 0"]
        target.animation_data_clear()
        took.append(_updates(ob, target, places))
    return Run(took[0] - took[1])


def _updates(ob: bpy.types.Object, target: bpy.types.Object, places: Floats) -> float:
    """Return the mean microseconds to re-evaluate an armature object with its target at places (F, 3)."""
    layer, took = bpy.context.view_layer, 0.0
    for place in places.tolist():
        target.location = place
        ob.update_tag(refresh={"DATA"})
        start = time.perf_counter()
        layer.update()
        took += time.perf_counter() - start
    return 1e6 * took / len(places)


# ---- a limb: two bones with limits and a pole, with half of its targets in reach and half out of it

LIMB = (Drag(2, pole=True), Drag(2, pole=True, outside=True))


def limb(number: int) -> Run:
    """Return the microseconds that the solver takes per limb, solving one after another."""
    problems = [problem for drag in LIMB for problem in _problems(drag, number)]
    order = np.random.default_rng(0).permutation(len(problems))
    solve(problems[0])
    return Run(1e3 * steps((partial(solve, problems[i]) for i in order), LEAST).time)


def _problems(drag: Drag, number: int) -> Iterable[Problem]:
    rig = drag.rig()
    for place in drag.moves(rig, number).places:
        problem = rig.problem(rig.at_rest(1), place[None], tolerance=TOLERANCE)
        yield replace(problem, goal=replace(problem.goal, pole=np.array([POLE]), segment=None))


def blender_limb(number: int) -> Run:
    """Return the microseconds that Blender's IK on the limb adds to an update."""
    rig = LIMB[0].rig()
    places = np.concatenate([drag.moves(rig, number).places[:, 0] for drag in LIMB])
    took = []
    for is_solved in (True, False):
        built = BlenderRig(rig)
        (bone,) = (built.bones[tip] for tip in rig.tips)
        bone.constraints["IK"].pole_target = rigs.empty("pole", POLE)
        if not is_solved:
            bone.constraints.remove(bone.constraints["IK"])
        took.append(_updates(built.object, built.targets[0], places))
    return Run(took[0] - took[1])


def _case(ours: Measure, work: Work, aim: float) -> Case:
    return Case("us", ours, partial(blender_alone, work, 300), aim=aim)


CASES = {
    "solve-2-limits-pole": Case("us", limb, blender_limb, aim=0.5),
    "solve-1000x10": _case(partial(many, 1000, 10, None), Work(1, 10), 0.036),
    "solve-1000x10-limits-30": _case(partial(many, 1000, 10, 30.0), Work(1, 10, limits=30.0), 0.2),
    "solve-1000x10-limits-90": _case(partial(many, 1000, 10, 90.0), Work(1, 10, limits=90.0), 0.33),
    # Per chain and per bone: the larger case against the smaller.
    "growth-chains": Case("us", partial(many, 10_000, 10, None), partial(many, 1000, 10, None), aim=1.2),
    "growth-bones": Case("us", partial(each_bone, 1000), partial(each_bone, 100), aim=1.2),
}
