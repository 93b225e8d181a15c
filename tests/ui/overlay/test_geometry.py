"""Lines and surfaces of chains, limits and reach as arrays, without a window."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.conftest import Addon
from tests.solve.chains import violation

FREE = (-math.inf, math.inf)
WHITE = (1.0, 1.0, 1.0, 1.0)


class Overlay(SimpleNamespace):
    """The geometry of the overlay, colors that differ from one another, and things to draw."""

    geometry: Any
    palette: Any

    def chains(self, **changes: Any) -> Any:
        """Return two chains, of two bones and of one."""
        state = self.geometry.State
        values = {
            "joints": np.array([[0, 0, 0], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]], dtype=float),
            "ends": np.array([2, 4]),
            "targets": np.array([[1, 0, 2], [5, 0, 3]], dtype=float),
            "poles": np.array([[0, 4, 1], [np.nan] * 3]),
            "states": np.array([state.REACHED, state.FAILED]),
            "at_limit": np.array([False, True, False, False, False]),
            "active": np.array([True, False]),
        }
        return self.geometry.Chains(**{**values, **changes})

    def joint(self, **changes: Any) -> Any:
        values: dict[str, Any] = {"head": np.array([1.0, 2.0, 3.0]), "length": 2.0, "rest": np.eye(3)}
        values |= {"frame": np.eye(3), "cone": (*radians(-30, 60), *radians(-20, 80)), "twist": radians(-45, 90)}
        return self.geometry.Joint(**{**values, "at_limit": False, "has_arc": False, **changes})

    def drawing(self, chains: Any = None, **parts: Any) -> Any:
        """Return the geometry of chains, and of an active one of which these parts are shown, if any."""
        values: dict[str, Any] = {"world": np.eye(4), "limits": (), "state": self.geometry.State.REACHED}
        values |= dict.fromkeys(("reach", "bend", "end", "plane"))
        active = [self.geometry.Active(**{**values, **parts})] if parts else []
        return self.geometry.drawing(self.geometry.Shown(chains or self.chains(), active), self.palette)

    def limit(self, joint: Any) -> Any:
        return self.geometry.limit(joint, self.palette)


@pytest.fixture
def overlay(addon: Addon) -> Overlay:
    geometry = addon.module("ui.overlay.geometry")
    states = tuple((i / 10.0, 0.0, 0.0, 1.0) for i in range(len(geometry.State)))
    palette = geometry.Palette(states, swing=WHITE, twist=WHITE, at_limit=(1.0, 1.0, 0.0, 1.0), reach=WHITE, pin=WHITE)
    return Overlay(geometry=geometry, palette=palette)


def radians(*degrees: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in degrees)


def test_segments_connect_joints_in_the_color_of_the_state(overlay: Overlay) -> None:
    lines = overlay.geometry.segments(overlay.chains(), overlay.palette)
    expected = [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]]
    assert lines.points.tolist() == expected
    assert lines.points.dtype == lines.colors.dtype == np.float32
    reds = np.round(10 * lines.colors[:, 0]).astype(int).tolist()
    assert reds == [overlay.geometry.State.REACHED] * 4 + [overlay.geometry.State.FAILED] * 2


def test_dashes_connect_tip_and_target_and_the_middle_and_the_pole(overlay: Overlay) -> None:
    lines = overlay.geometry.goal_lines(overlay.chains(), overlay.palette).points
    lines = lines.reshape(-1, 2 * overlay.geometry.DASHES, 3)
    assert lines[:, [0, -1]].tolist() == [[[0, 0, 2], [1, 0, 2]], [[5, 0, 1], [5, 0, 3]], [[0, 0, 1], [0, 4, 1]]]
    lengths = np.linalg.norm(np.diff(lines[0], axis=0), axis=1)
    assert np.ptp(lengths) < 1e-6
    reached = np.array([[0, 0, 2], [5, 0, 3]], dtype=float)
    lines = overlay.geometry.goal_lines(overlay.chains(targets=reached, poles=np.full((2, 3), np.nan)), overlay.palette)
    assert len(lines.points) == 2 * overlay.geometry.DASHES, "a tip on its target has none"


def test_nan_is_not_drawn(overlay: Overlay) -> None:
    lost = overlay.chains().joints
    lost[1] = np.nan
    nowhere = overlay.chains(joints=lost, targets=np.full((2, 3), np.nan))
    drawn = overlay.drawing(nowhere, limits=(overlay.joint(head=np.full(3, np.inf)),))
    assert len(drawn.segments.points) == 2  # those of the other chain
    assert len(drawn.edges.points) == len(drawn.faces.points) == 0


def test_limits_are_drawn_at_the_joint_of_the_armature(overlay: Overlay) -> None:
    world = np.array([[0, -2, 0, 10], [2, 0, 0, 20], [0, 0, -2, 30], [0, 0, 0, 1]], dtype=float)
    bone = overlay.joint(twist=FREE)
    (edge, _), (spokes, _) = overlay.limit(bone)[0]
    assert np.allclose(np.linalg.norm(edge - bone.head, axis=1), overlay.geometry.CONE_SIZE * bone.length)
    assert np.allclose(spokes[::2], bone.head)
    drawn = overlay.drawing(world=world, limits=(bone,))
    dashed = 3 * 2 * overlay.geometry.DASHES
    moved = overlay.geometry.moved(world, np.concatenate([edge, spokes]))
    assert np.allclose(drawn.edges.points[dashed:], moved, atol=1e-5)


def test_a_joint_at_a_limit_is_highlighted(overlay: Overlay) -> None:
    calm, tight = (overlay.limit(overlay.joint(at_limit=at))[0][0][1] for at in (False, True))
    assert calm[:3] == overlay.palette.swing[:3]
    assert tight[:3] == overlay.palette.at_limit[:3]
    assert overlay.drawing().dots.tolist() == [[0, 0, 1]]


def test_the_plane_is_a_disc_perpendicular_to_its_normal(overlay: Overlay) -> None:
    center, normal = np.array([1.0, 2.0, 3.0]), np.array([0.6, 0.0, 0.8])
    drawn = overlay.drawing(world=np.diag([1.0, 1.0, -2.0, 1.0]), plane=overlay.geometry.Plane(center, normal, 1.5))
    points = drawn.faces.points @ np.diag([1.0, 1.0, -0.5]).astype(np.float32)
    assert np.abs((points - center) @ normal).max() < 1e-5
    away = np.linalg.norm(points.reshape(-1, 3, 3) - center, axis=2)
    assert np.allclose(away[:, 0], 0.0, atol=1e-5)
    assert np.allclose(away[:, 1:], 1.5, atol=1e-5)
    assert len(drawn.edges.points) > len(overlay.drawing().edges.points)


def test_the_arrow_points_to_the_bend_side(overlay: Overlay) -> None:
    joint, side = np.array([1.0, 2.0, 3.0]), np.array([0.0, -1.0, 0.0])
    lines = overlay.geometry.arrow(joint, side, np.array([0.0, 0.0, 1.0]), 2.0)
    assert np.allclose(lines[0], joint)
    tip = joint + overlay.geometry.ARROW * 2.0 * side
    assert (np.abs(lines - tip).sum(axis=1) < 1e-12).sum() == 3, "the shaft and both barbs end there"
    assert ((lines - joint) @ side).max() == pytest.approx(overlay.geometry.ARROW * 2.0)
    drawn = overlay.drawing(world=np.diag([2.0, 2.0, 2.0, 1.0]), bend=lines)
    assert np.allclose(drawn.edges.points[-6:], 2.0 * lines)
    assert np.allclose(drawn.edges.colors[-6:], overlay.palette.states[overlay.geometry.State.REACHED])


def test_the_hand_is_drawn_as_part_of_the_chain(overlay: Overlay) -> None:
    end = np.array([[0.0, 0.0, 2.0], [0.0, -0.5, 2.0]])
    drawn = overlay.drawing(world=np.diag([1.0, 2.0, 1.0, 1.0]), end=end, state=2)
    assert np.array_equal(drawn.segments.points[:-2], overlay.drawing().segments.points)
    assert np.allclose(drawn.segments.points[-2:], [[0.0, 0.0, 2.0], [0.0, -1.0, 2.0]])
    assert np.allclose(drawn.segments.colors[-2:], overlay.palette.states[2])


def test_limits_that_blender_draws_as_arcs_have_no_cone(overlay: Overlay) -> None:
    edges, faces = overlay.limit(overlay.joint(has_arc=True))
    twist_edges, twist_faces = overlay.limit(overlay.joint(cone=(*FREE, *FREE)))
    assert [points.tolist() for points, _ in edges] == [points.tolist() for points, _ in twist_edges]
    assert len(faces) == len(twist_faces) == 1


def test_active_chains_and_chains_in_trouble_stand_out(overlay: Overlay) -> None:
    state = overlay.geometry.State
    for states, active_ones, opacity in (
        ([state.REACHED, state.FAILED], [False, False], [overlay.geometry.FAINT, 1.0]),
        ([state.REACHED, state.REACHED], [False, True], [overlay.geometry.FAINT, 1.0]),
        ([state.OUT_OF_REACH, state.UNKNOWN], [False, False], [1.0, overlay.geometry.FAINT]),
        ([state.HELD, state.UNKNOWN], [False, True], [1.0, 1.0]),
    ):
        seen = overlay.chains(states=np.array(states), active=np.array(active_ones))
        colors = overlay.geometry.segments(seen, overlay.palette).colors  # two segments, then one
        assert colors[[0, -1], 3] == pytest.approx(opacity)


# ---- limits and reach


def test_the_edge_of_a_cone_is_at_its_angles(overlay: Overlay) -> None:
    edge = overlay.geometry.directions((*radians(-30, 60), *radians(-20, 80)))
    for axis, angle in (("x", 60.0), ("z", 80.0), ("x", -30.0), ("z", -20.0)):
        a = math.radians(angle)
        # A rotation about X turns the Y axis towards Z, one about Z turns it away from X.
        expected = (0.0, math.cos(a), math.sin(a)) if axis == "x" else (-math.sin(a), math.cos(a), 0.0)
        assert np.abs(edge - expected).sum(axis=1).min() < 1e-9, (axis, angle)
    assert np.allclose(np.linalg.norm(edge, axis=-1), 1.0)


def test_the_shown_cone_is_exactly_what_limits_allow(overlay: Overlay, addon: Addon) -> None:
    cones, rotations = addon.module("solve.maths.cones"), addon.module("solve.maths.rotations")
    rng = np.random.default_rng(7)
    for _ in range(50):
        angles = rng.uniform([-3.1, 0.05, -3.1, 0.05], [-0.05, 3.1, -0.05, 3.1])
        cone = cones.cone_of(angles[None], np.array([[-np.inf, np.inf]]))
        edge = overlay.geometry.directions(tuple(angles)).T
        y = np.broadcast_to(np.array([[0.0], [1.0], [0.0]]), edge.shape)
        turns = rotations.between(y, edge, np.broadcast_to(np.array([[1.0], [0.0], [0.0]]), edge.shape))
        swing, twist = cones.swing_twist(turns)
        assert violation(turns, cone).max() < 1e-6
        wider = 1.05 * swing
        inside = (wider**2).sum(axis=0) < 0.9
        further = cones.joint_rotation(wider[:, inside], twist[inside])
        assert (violation(further, cone) > 1e-3).all()


def test_a_hinge_is_an_arc_and_an_axis_without_limit_is_open_all_around(overlay: Overlay) -> None:
    edge = overlay.geometry.directions((*radians(0, 120), 0.0, 0.0))
    assert np.abs(edge[..., 0]).max() < 1e-12
    angles = np.degrees(np.arctan2(edge[..., 2], edge[..., 1]))
    assert angles.min() > -1e-6
    assert angles.max() == pytest.approx(120.0)
    edge = overlay.geometry.directions((*FREE, *radians(-20, 20)))
    assert np.abs(edge - (0.0, -1.0, 0.0)).sum(axis=1).min() < 1e-6


def test_limits_are_measured_from_rest_rather_than_from_the_pose(overlay: Overlay) -> None:
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    same, other = (overlay.joint(frame=frame, twist=FREE) for frame in (np.eye(3), turned))
    assert np.array_equal(overlay.limit(same)[0][0][0], overlay.limit(other)[0][0][0])
    moved = overlay.joint(rest=turned, twist=FREE)
    expected = (overlay.limit(same)[0][0][0] - same.head) @ turned.T + same.head
    assert np.allclose(overlay.limit(moved)[0][0][0], expected)


def test_the_twist_arc_goes_from_limit_to_limit_about_the_bone(overlay: Overlay) -> None:
    arc, present = overlay.geometry.twist_arc(overlay.joint())
    assert np.allclose(arc[0], (math.cos(math.pi / 4), 0.0, math.sin(math.pi / 4)))
    assert np.allclose(arc[-1], (0.0, 0.0, -1.0))
    assert np.allclose(present, (1.0, 0.0, 0.0))
    half = math.sqrt(0.5)
    swung = np.array([[1.0, 0.0, 0.0], [0.0, half, -half], [0.0, half, half]])
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    moved, there = overlay.geometry.twist_arc(overlay.joint(rest=turned, frame=turned @ swung))
    arc, present = overlay.geometry.twist_arc(overlay.joint(frame=swung))
    assert np.allclose(arc @ swung[:, 1], 0.0)
    assert np.allclose(moved, arc @ turned.T)
    assert np.allclose(there, turned @ present)


def test_without_limits_there_is_no_cone_and_no_arc(overlay: Overlay) -> None:
    assert overlay.limit(overlay.joint(cone=(*FREE, *FREE), twist=FREE)) == ([], [])


def test_the_outline_of_reach_is_where_the_view_touches_the_sphere(overlay: Overlay) -> None:
    center, radius = np.array([0.5, 0.25, 0.0]), 1.5
    for eye in ((0.0, -9.0, 2.0, 1.0), (3.0, 1.0, 0.5, 1.0), (0.0, 0.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0)):
        points = overlay.geometry.reach(center, radius, np.array(eye))
        away = points - center
        assert np.allclose(np.linalg.norm(away, axis=1), radius, atol=1e-6), eye
        sight = np.array(eye[:3]) - eye[3] * points
        assert np.abs((away * sight).sum(axis=1)).max() < 1e-5, eye
    assert len(overlay.geometry.reach(np.zeros(3), 1.0, np.array([0.0, 0.5, 0.0, 1.0]))) == 0, "none inside"
