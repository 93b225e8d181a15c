"""Lines and surfaces as arrays, without a window."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon

WHITE = (1.0, 1.0, 1.0, 1.0)
FREE = (-math.inf, math.inf)


@pytest.fixture
def geometry(addon: Addon) -> Any:
    return addon.module("overlay.geometry")


@pytest.fixture
def palette(geometry: Any) -> Any:
    states = tuple((i / 10.0, 0.0, 0.0, 1.0) for i in range(len(geometry.State)))
    return geometry.Palette(states, swing=WHITE, twist=WHITE, at_limit=(1.0, 1.0, 0.0, 1.0), reach=WHITE)


def radians(*degrees: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in degrees)


def chains(geometry: Any, **changes: Any) -> Any:
    """Two chains, of two bones and of one."""
    values = {
        "joints": np.array([[0, 0, 0], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]], dtype=float),
        "ends": np.array([2, 4]),
        "targets": np.array([[1, 0, 2], [5, 0, 3]], dtype=float),
        "poles": np.array([[0, 4, 1], [np.nan] * 3]),
        "states": np.array([geometry.State.REACHED, geometry.State.FAILED]),
        "at_limit": np.array([False, True, False, False, False]),
    }
    return geometry.Chains(**{**values, **changes})


def joint(geometry: Any, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "head": np.array([1.0, 2.0, 3.0]),
        "length": 2.0,
        "rest": np.eye(3),
        "frame": np.eye(3),
        "cone": (*radians(-30, 60), *radians(-20, 80)),
        "twist": radians(-45, 90),
        "at_limit": False,
    }
    return geometry.Joint(**{**values, **changes})


def test_segments_go_from_joint_to_joint_in_the_colour_of_the_state(geometry: Any, palette: Any) -> None:
    lines = geometry.segments(chains(geometry), palette)
    expected = [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]]
    assert lines.points.tolist() == expected
    assert lines.points.dtype == lines.colours.dtype == np.float32
    reds = np.round(10 * lines.colours[:, 0]).astype(int).tolist()
    assert reds == [geometry.State.REACHED] * 4 + [geometry.State.FAILED] * 2


def test_dashes_go_from_tip_to_target_and_from_the_middle_to_the_pole(geometry: Any, palette: Any) -> None:
    lines = geometry.goal_lines(chains(geometry), palette).points.reshape(-1, 2 * geometry.DASHES, 3)
    assert lines[:, [0, -1]].tolist() == [[[0, 0, 2], [1, 0, 2]], [[5, 0, 1], [5, 0, 3]], [[0, 0, 1], [0, 4, 1]]]
    lengths = np.linalg.norm(np.diff(lines[0], axis=0), axis=1)
    assert np.ptp(lengths) < 1e-6


def test_a_tip_on_its_target_needs_no_line(geometry: Any, palette: Any) -> None:
    reached = np.array([[0, 0, 2], [5, 0, 3]], dtype=float)
    lines = geometry.goal_lines(chains(geometry, targets=reached, poles=np.full((2, 3), np.nan)), palette)
    assert len(lines.points) == 2 * geometry.DASHES


def test_what_is_not_a_number_is_not_drawn(geometry: Any, palette: Any) -> None:
    lost = chains(geometry).joints
    lost[1] = np.nan
    drawn = geometry.drawing(
        chains(geometry, joints=lost, targets=np.full((2, 3), np.nan)),
        [geometry.Active(np.eye(4), (joint(geometry, head=np.full(3, np.inf)),), None, None)],
        palette,
    )
    assert len(drawn.segments.points) == 2  # of the other chain
    assert len(drawn.edges.points) == len(drawn.faces.points) == 0


def test_no_chain_at_all_is_nothing(geometry: Any, palette: Any) -> None:
    none = geometry.Chains(
        joints=np.zeros((0, 3)),
        ends=np.zeros(0, dtype=np.int64),
        targets=np.zeros((0, 3)),
        poles=np.zeros((0, 3)),
        states=np.zeros(0, dtype=np.int64),
        at_limit=np.zeros(0, dtype=bool),
    )
    drawn = geometry.drawing(none, [], palette)
    assert len(drawn.segments.points) == len(drawn.edges.points) == len(drawn.dots) == 0


@pytest.mark.parametrize(
    ("axis", "turn", "angle"), [("high x", 0, 60.0), ("high z", 1, 80.0), ("low x", 0, -30.0), ("low z", 1, -20.0)]
)
def test_the_edge_of_a_cone_is_at_its_angles(geometry: Any, axis: str, turn: int, angle: float) -> None:
    surface = geometry.directions((*radians(-30, 60), *radians(-20, 80)))
    a = math.radians(angle)
    # About X the Y axis turns to Z, about Z away from X.
    expected = (0.0, math.cos(a), math.sin(a)) if turn == 0 else (-math.sin(a), math.cos(a), 0.0)
    assert np.abs(surface[-1] - expected).sum(axis=1).min() < 1e-9, axis
    assert np.allclose(surface[0], (0.0, 1.0, 0.0))
    assert np.allclose(np.linalg.norm(surface, axis=-1), 1.0)


def test_all_that_is_shown_is_allowed_and_what_is_beyond_is_not(addon: Addon, geometry: Any) -> None:
    cones, rotations = addon.module("solve.cones"), addon.module("solve.rotations")
    rng = np.random.default_rng(7)
    for _ in range(50):
        angles = rng.uniform([-3.1, 0.05, -3.1, 0.05], [-0.05, 3.1, -0.05, 3.1])
        cone = cones.cone_of(angles[None], np.array([[-np.inf, np.inf]]))
        edge = geometry.directions(tuple(angles))[-1].T
        y = np.broadcast_to(np.array([[0.0], [1.0], [0.0]]), edge.shape)
        turns = rotations.between(y, edge, np.broadcast_to(np.array([[1.0], [0.0], [0.0]]), edge.shape))
        swing, twist = cones.swing_twist(turns)
        assert cones.violation(turns, cone).max() < 1e-6
        wider = 1.05 * swing
        inside = (wider**2).sum(axis=0) < 0.9
        further = cones.joint_rotation(wider[:, inside], twist[inside])
        assert (cones.violation(further, cone) > 1e-3).all()


def test_a_hinge_is_an_arc(geometry: Any) -> None:
    surface = geometry.directions((*radians(0, 120), 0.0, 0.0))
    assert np.abs(surface[..., 0]).max() < 1e-12
    angles = np.degrees(np.arctan2(surface[..., 2], surface[..., 1]))
    assert angles.min() > -1e-6
    assert angles.max() == pytest.approx(120.0)


def test_an_axis_without_limit_is_open_all_round(geometry: Any) -> None:
    surface = geometry.directions((*FREE, *radians(-20, 20)))
    assert np.abs(surface[-1] - (0.0, -1.0, 0.0)).sum(axis=1).min() < 1e-6


def test_limits_are_at_the_joint_in_the_place_of_the_armature(geometry: Any, palette: Any) -> None:
    world = np.array([[0, -2, 0, 10], [2, 0, 0, 20], [0, 0, -2, 30], [0, 0, 0, 1]], dtype=float)
    shown = joint(geometry, twist=FREE)
    (edge, _), (spokes, _) = geometry.limit(shown, palette)[0]
    assert np.allclose(np.linalg.norm(edge - shown.head, axis=1), geometry.CONE_SIZE * shown.length)
    assert np.allclose(spokes[::2], shown.head)
    drawn = geometry.drawing(chains(geometry), [geometry.Active(world, (shown,), None, None)], palette)
    dashed = 3 * 2 * geometry.DASHES
    moved = geometry.transformed(world, np.concatenate([edge, spokes]))
    assert np.allclose(drawn.edges.points[dashed:], moved, atol=1e-5)


def test_limits_are_measured_from_rest_and_not_from_the_pose(geometry: Any, palette: Any) -> None:
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    same, other = (joint(geometry, frame=frame, twist=FREE) for frame in (np.eye(3), turned))
    assert np.array_equal(geometry.limit(same, palette)[0][0][0], geometry.limit(other, palette)[0][0][0])
    moved = joint(geometry, rest=turned, twist=FREE)
    expected = (geometry.limit(same, palette)[0][0][0] - same.head) @ turned.T + same.head
    assert np.allclose(geometry.limit(moved, palette)[0][0][0], expected)


def test_the_twist_arc_goes_from_limit_to_limit_about_the_bone(geometry: Any) -> None:
    arc, present = geometry.twist_arc(joint(geometry))
    assert np.allclose(arc[0], (math.cos(math.pi / 4), 0.0, math.sin(math.pi / 4)))
    assert np.allclose(arc[-1], (0.0, 0.0, -1.0))
    assert np.allclose(present, (1.0, 0.0, 0.0))
    half = math.sqrt(0.5)
    swung = np.array([[1.0, 0.0, 0.0], [0.0, half, -half], [0.0, half, half]])
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    moved, there = geometry.twist_arc(joint(geometry, rest=turned, frame=turned @ swung))
    arc, present = geometry.twist_arc(joint(geometry, frame=swung))
    assert np.allclose(arc @ swung[:, 1], 0.0)
    assert np.allclose(moved, arc @ turned.T)
    assert np.allclose(there, turned @ present)


def test_a_joint_at_a_limit_is_shown_as_such(geometry: Any, palette: Any) -> None:
    calm, tight = (geometry.limit(joint(geometry, at_limit=at), palette)[0][0][1] for at in (False, True))
    assert calm[:3] == palette.swing[:3]
    assert tight[:3] == palette.at_limit[:3]
    drawn = geometry.drawing(chains(geometry), [], palette)
    assert drawn.dots.tolist() == [[0, 0, 1]]


def test_without_limits_there_is_no_cone_and_no_arc(geometry: Any, palette: Any) -> None:
    assert geometry.limit(joint(geometry, cone=(*FREE, *FREE), twist=FREE), palette) == ([], [])


@pytest.mark.parametrize(
    "eye", [(0.0, -9.0, 2.0, 1.0), (3.0, 1.0, 0.5, 1.0), (0.0, 0.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0)]
)
def test_the_outline_of_reach_is_where_the_view_touches_the_sphere(
    geometry: Any, eye: tuple[float, float, float, float]
) -> None:
    centre, radius = np.array([0.5, 0.25, 0.0]), 1.5
    points = geometry.reach(centre, radius, np.array(eye, dtype=float))
    away = points - centre
    assert np.allclose(np.linalg.norm(away, axis=1), radius, atol=1e-6)
    sight = np.array(eye[:3]) - eye[3] * points
    assert np.abs((away * sight).sum(axis=1)).max() < 1e-5


def test_from_inside_the_sphere_there_is_no_outline(geometry: Any) -> None:
    assert len(geometry.reach(np.zeros(3), 1.0, np.array([0.0, 0.5, 0.0, 1.0]))) == 0


def test_the_plane_is_a_disc_across_its_normal(geometry: Any, palette: Any) -> None:
    centre, normal = np.array([1.0, 2.0, 3.0]), np.array([0.6, 0.0, 0.8])
    world = np.diag([1.0, 1.0, -2.0, 1.0])
    flat = geometry.Plane(centre, normal, 1.5)
    drawn = geometry.drawing(chains(geometry), [geometry.Active(world, (), None, flat)], palette)
    points = drawn.faces.points @ np.diag([1.0, 1.0, -0.5]).astype(np.float32)
    assert np.abs((points - centre) @ normal).max() < 1e-5
    away = np.linalg.norm(points.reshape(-1, 3, 3) - centre, axis=2)
    assert np.allclose(away[:, 0], 0.0, atol=1e-5)
    assert np.allclose(away[:, 1:], 1.5, atol=1e-5)
    assert len(drawn.edges.points) > len(geometry.drawing(chains(geometry), [], palette).edges.points)
