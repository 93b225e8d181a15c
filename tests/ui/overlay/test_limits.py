"""Limits and reach as lines and surfaces, without a window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.conftest import Addon
from tests.solve.chains import violation
from tests.ui.overlay.examples import FREE, joint, radians


@pytest.mark.parametrize(
    ("axis", "turn", "angle"), [("high x", 0, 60.0), ("high z", 1, 80.0), ("low x", 0, -30.0), ("low z", 1, -20.0)]
)
def test_the_edge_of_a_cone_is_at_its_angles(limits: Any, axis: str, turn: int, angle: float) -> None:
    edge = limits.directions((*radians(-30, 60), *radians(-20, 80)))
    a = math.radians(angle)
    # A rotation about X turns the Y axis towards Z, one about Z turns it away from X.
    expected = (0.0, math.cos(a), math.sin(a)) if turn == 0 else (-math.sin(a), math.cos(a), 0.0)
    assert np.abs(edge - expected).sum(axis=1).min() < 1e-9, axis
    assert np.allclose(np.linalg.norm(edge, axis=-1), 1.0)


def test_the_shown_cone_is_exactly_what_limits_allow(addon: Addon, limits: Any) -> None:
    cones, rotations = addon.module("solve.maths.cones"), addon.module("solve.maths.rotations")
    rng = np.random.default_rng(7)
    for _ in range(50):
        angles = rng.uniform([-3.1, 0.05, -3.1, 0.05], [-0.05, 3.1, -0.05, 3.1])
        cone = cones.cone_of(angles[None], np.array([[-np.inf, np.inf]]))
        edge = limits.directions(tuple(angles)).T
        y = np.broadcast_to(np.array([[0.0], [1.0], [0.0]]), edge.shape)
        turns = rotations.between(y, edge, np.broadcast_to(np.array([[1.0], [0.0], [0.0]]), edge.shape))
        swing, twist = cones.swing_twist(turns)
        assert violation(turns, cone).max() < 1e-6
        wider = 1.05 * swing
        inside = (wider**2).sum(axis=0) < 0.9
        further = cones.joint_rotation(wider[:, inside], twist[inside])
        assert (violation(further, cone) > 1e-3).all()


def test_a_hinge_is_an_arc(limits: Any) -> None:
    edge = limits.directions((*radians(0, 120), 0.0, 0.0))
    assert np.abs(edge[..., 0]).max() < 1e-12
    angles = np.degrees(np.arctan2(edge[..., 2], edge[..., 1]))
    assert angles.min() > -1e-6
    assert angles.max() == pytest.approx(120.0)


def test_an_axis_without_limit_is_open_all_around(limits: Any) -> None:
    edge = limits.directions((*FREE, *radians(-20, 20)))
    assert np.abs(edge - (0.0, -1.0, 0.0)).sum(axis=1).min() < 1e-6


def test_limits_are_measured_from_rest_rather_than_from_the_pose(shown: Any, limits: Any, palette: Any) -> None:
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    same, other = (joint(shown, frame=frame, twist=FREE) for frame in (np.eye(3), turned))
    assert np.array_equal(limits.limit(same, palette)[0][0][0], limits.limit(other, palette)[0][0][0])
    moved = joint(shown, rest=turned, twist=FREE)
    expected = (limits.limit(same, palette)[0][0][0] - same.head) @ turned.T + same.head
    assert np.allclose(limits.limit(moved, palette)[0][0][0], expected)


def test_the_twist_arc_goes_from_limit_to_limit_about_the_bone(shown: Any, limits: Any) -> None:
    arc, present = limits.twist_arc(joint(shown))
    assert np.allclose(arc[0], (math.cos(math.pi / 4), 0.0, math.sin(math.pi / 4)))
    assert np.allclose(arc[-1], (0.0, 0.0, -1.0))
    assert np.allclose(present, (1.0, 0.0, 0.0))
    half = math.sqrt(0.5)
    swung = np.array([[1.0, 0.0, 0.0], [0.0, half, -half], [0.0, half, half]])
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    moved, there = limits.twist_arc(joint(shown, rest=turned, frame=turned @ swung))
    arc, present = limits.twist_arc(joint(shown, frame=swung))
    assert np.allclose(arc @ swung[:, 1], 0.0)
    assert np.allclose(moved, arc @ turned.T)
    assert np.allclose(there, turned @ present)


def test_without_limits_there_is_no_cone_and_no_arc(shown: Any, limits: Any, palette: Any) -> None:
    assert limits.limit(joint(shown, cone=(*FREE, *FREE), twist=FREE), palette) == ([], [])


@pytest.mark.parametrize(
    "eye", [(0.0, -9.0, 2.0, 1.0), (3.0, 1.0, 0.5, 1.0), (0.0, 0.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0)]
)
def test_the_outline_of_reach_is_where_the_view_touches_the_sphere(
    limits: Any, eye: tuple[float, float, float, float]
) -> None:
    center, radius = np.array([0.5, 0.25, 0.0]), 1.5
    points = limits.reach(center, radius, np.array(eye, dtype=float))
    away = points - center
    assert np.allclose(np.linalg.norm(away, axis=1), radius, atol=1e-6)
    sight = np.array(eye[:3]) - eye[3] * points
    assert np.abs((away * sight).sum(axis=1)).max() < 1e-5


def test_inside_the_sphere_there_is_no_outline(limits: Any) -> None:
    assert len(limits.reach(np.zeros(3), 1.0, np.array([0.0, 0.5, 0.0, 1.0]))) == 0
