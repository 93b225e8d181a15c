"""Lines and surfaces as arrays, without a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ui.overlay.examples import FREE, active, chains, joint


def test_segments_connect_joints_in_the_color_of_the_state(shown: Any, geometry: Any, palette: Any) -> None:
    lines = geometry.segments(chains(shown), palette)
    expected = [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]]
    assert lines.points.tolist() == expected
    assert lines.points.dtype == lines.colors.dtype == np.float32
    reds = np.round(10 * lines.colors[:, 0]).astype(int).tolist()
    assert reds == [shown.State.REACHED] * 4 + [shown.State.FAILED] * 2


def test_dashes_connect_tip_and_target_and_the_middle_and_the_pole(shown: Any, geometry: Any, palette: Any) -> None:
    lines = geometry.goal_lines(chains(shown), palette).points.reshape(-1, 2 * geometry.DASHES, 3)
    assert lines[:, [0, -1]].tolist() == [[[0, 0, 2], [1, 0, 2]], [[5, 0, 1], [5, 0, 3]], [[0, 0, 1], [0, 4, 1]]]
    lengths = np.linalg.norm(np.diff(lines[0], axis=0), axis=1)
    assert np.ptp(lengths) < 1e-6


def test_a_tip_on_its_target_has_no_line(shown: Any, geometry: Any, palette: Any) -> None:
    reached = np.array([[0, 0, 2], [5, 0, 3]], dtype=float)
    lines = geometry.goal_lines(chains(shown, targets=reached, poles=np.full((2, 3), np.nan)), palette)
    assert len(lines.points) == 2 * geometry.DASHES


def test_nan_is_not_drawn(shown: Any, geometry: Any, palette: Any) -> None:
    lost = chains(shown).joints
    lost[1] = np.nan
    drawn = geometry.drawing(
        chains(shown, joints=lost, targets=np.full((2, 3), np.nan)),
        [active(shown, limits=(joint(shown, head=np.full(3, np.inf)),))],
        palette,
    )
    assert len(drawn.segments.points) == 2  # those of the other chain
    assert len(drawn.edges.points) == len(drawn.faces.points) == 0


def test_limits_are_drawn_at_the_joint_of_the_armature(shown: Any, geometry: Any, limits: Any, palette: Any) -> None:
    world = np.array([[0, -2, 0, 10], [2, 0, 0, 20], [0, 0, -2, 30], [0, 0, 0, 1]], dtype=float)
    bone = joint(shown, twist=FREE)
    (edge, _), (spokes, _) = limits.limit(bone, palette)[0]
    assert np.allclose(np.linalg.norm(edge - bone.head, axis=1), limits.CONE_SIZE * bone.length)
    assert np.allclose(spokes[::2], bone.head)
    drawn = geometry.drawing(chains(shown), [active(shown, world=world, limits=(bone,))], palette)
    dashed = 3 * 2 * geometry.DASHES
    moved = geometry.moved(world, np.concatenate([edge, spokes]))
    assert np.allclose(drawn.edges.points[dashed:], moved, atol=1e-5)


def test_a_joint_at_a_limit_is_highlighted(shown: Any, geometry: Any, limits: Any, palette: Any) -> None:
    calm, tight = (limits.limit(joint(shown, at_limit=at), palette)[0][0][1] for at in (False, True))
    assert calm[:3] == palette.swing[:3]
    assert tight[:3] == palette.at_limit[:3]
    drawn = geometry.drawing(chains(shown), [], palette)
    assert drawn.dots.tolist() == [[0, 0, 1]]


def test_the_plane_is_a_disc_perpendicular_to_its_normal(shown: Any, geometry: Any, palette: Any) -> None:
    center, normal = np.array([1.0, 2.0, 3.0]), np.array([0.6, 0.0, 0.8])
    world = np.diag([1.0, 1.0, -2.0, 1.0])
    flat = shown.Plane(center, normal, 1.5)
    drawn = geometry.drawing(chains(shown), [active(shown, world=world, plane=flat)], palette)
    points = drawn.faces.points @ np.diag([1.0, 1.0, -0.5]).astype(np.float32)
    assert np.abs((points - center) @ normal).max() < 1e-5
    away = np.linalg.norm(points.reshape(-1, 3, 3) - center, axis=2)
    assert np.allclose(away[:, 0], 0.0, atol=1e-5)
    assert np.allclose(away[:, 1:], 1.5, atol=1e-5)
    assert len(drawn.edges.points) > len(geometry.drawing(chains(shown), [], palette).edges.points)


def test_the_arrow_points_to_the_bend_side(shown: Any, geometry: Any, limits: Any, palette: Any) -> None:
    bend = shown.Bend(np.array([1.0, 2.0, 3.0]), np.array([0.0, -1.0, 0.0]), np.array([0.0, 0.0, 1.0]), 2.0)
    lines = limits.arrow(bend)
    assert np.allclose(lines[0], bend.joint)
    tip = bend.joint + limits.ARROW * 2.0 * bend.side
    assert (np.abs(lines - tip).sum(axis=1) < 1e-12).sum() == 3, "the shaft and both barbs end there"
    assert ((lines - bend.joint) @ bend.side).max() == pytest.approx(limits.ARROW * 2.0)
    world = np.diag([2.0, 2.0, 2.0, 1.0])
    drawn = geometry.drawing(chains(shown), [active(shown, world=world, bend=bend)], palette)
    assert np.allclose(drawn.edges.points[-6:], 2.0 * lines)
    assert np.allclose(drawn.edges.colors[-6:], palette.states[shown.State.REACHED])


def test_the_hand_is_drawn_as_part_of_the_chain(shown: Any, geometry: Any, palette: Any) -> None:
    end = np.array([[0.0, 0.0, 2.0], [0.0, -0.5, 2.0]])
    world = np.diag([1.0, 2.0, 1.0, 1.0])
    bare = geometry.drawing(chains(shown), [], palette)
    drawn = geometry.drawing(chains(shown), [active(shown, world=world, end=end, state=2)], palette)
    assert np.array_equal(drawn.segments.points[:-2], bare.segments.points)
    assert np.allclose(drawn.segments.points[-2:], [[0.0, 0.0, 2.0], [0.0, -1.0, 2.0]])
    assert np.allclose(drawn.segments.colors[-2:], palette.states[2])


def test_limits_that_blender_draws_as_arcs_have_no_cone(shown: Any, limits: Any, palette: Any) -> None:
    edges, faces = limits.limit(joint(shown, has_arc=True), palette)
    twist_edges, twist_faces = limits.limit(joint(shown, cone=(*FREE, *FREE)), palette)
    assert [points.tolist() for points, _ in edges] == [points.tolist() for points, _ in twist_edges]
    assert len(faces) == len(twist_faces) == 1


def test_active_chains_and_chains_in_trouble_stand_out(shown: Any, geometry: Any, palette: Any) -> None:
    state = shown.State
    for states, active_ones, opacity in (
        ([state.REACHED, state.FAILED], [False, False], [geometry.FAINT, 1.0]),
        ([state.REACHED, state.REACHED], [False, True], [geometry.FAINT, 1.0]),
        ([state.OUT_OF_REACH, state.UNKNOWN], [False, False], [1.0, geometry.FAINT]),
        ([state.HELD, state.UNKNOWN], [False, True], [1.0, 1.0]),
    ):
        seen = chains(shown, states=np.array(states), active=np.array(active_ones))
        colors = geometry.segments(seen, palette).colors  # two segments, then one
        assert colors[[0, -1], 3] == pytest.approx(opacity)
