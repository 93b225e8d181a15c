"""Lines and surfaces as arrays, without a window."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.overlay.examples import FREE, chains, joint


def test_segments_go_from_joint_to_joint_in_the_colour_of_the_state(shown: Any, geometry: Any, palette: Any) -> None:
    lines = geometry.segments(chains(shown), palette)
    expected = [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]]
    assert lines.points.tolist() == expected
    assert lines.points.dtype == lines.colours.dtype == np.float32
    reds = np.round(10 * lines.colours[:, 0]).astype(int).tolist()
    assert reds == [shown.State.REACHED] * 4 + [shown.State.FAILED] * 2


def test_dashes_go_from_tip_to_target_and_from_the_middle_to_the_pole(shown: Any, geometry: Any, palette: Any) -> None:
    lines = geometry.goal_lines(chains(shown), palette).points.reshape(-1, 2 * geometry.DASHES, 3)
    assert lines[:, [0, -1]].tolist() == [[[0, 0, 2], [1, 0, 2]], [[5, 0, 1], [5, 0, 3]], [[0, 0, 1], [0, 4, 1]]]
    lengths = np.linalg.norm(np.diff(lines[0], axis=0), axis=1)
    assert np.ptp(lengths) < 1e-6


def test_a_tip_on_its_target_needs_no_line(shown: Any, geometry: Any, palette: Any) -> None:
    reached = np.array([[0, 0, 2], [5, 0, 3]], dtype=float)
    lines = geometry.goal_lines(chains(shown, targets=reached, poles=np.full((2, 3), np.nan)), palette)
    assert len(lines.points) == 2 * geometry.DASHES


def test_what_is_not_a_number_is_not_drawn(shown: Any, geometry: Any, palette: Any) -> None:
    lost = chains(shown).joints
    lost[1] = np.nan
    drawn = geometry.drawing(
        chains(shown, joints=lost, targets=np.full((2, 3), np.nan)),
        [shown.Active(np.eye(4), (joint(shown, head=np.full(3, np.inf)),), None, None)],
        palette,
    )
    assert len(drawn.segments.points) == 2  # of the other chain
    assert len(drawn.edges.points) == len(drawn.faces.points) == 0


def test_no_chain_at_all_is_nothing(shown: Any, geometry: Any, palette: Any) -> None:
    none = shown.Chains(
        joints=np.zeros((0, 3)),
        ends=np.zeros(0, dtype=np.int64),
        targets=np.zeros((0, 3)),
        poles=np.zeros((0, 3)),
        states=np.zeros(0, dtype=np.int64),
        at_limit=np.zeros(0, dtype=bool),
    )
    drawn = geometry.drawing(none, [], palette)
    assert len(drawn.segments.points) == len(drawn.edges.points) == len(drawn.dots) == 0


def test_limits_are_drawn_at_the_joint_of_the_armature(shown: Any, geometry: Any, limits: Any, palette: Any) -> None:
    world = np.array([[0, -2, 0, 10], [2, 0, 0, 20], [0, 0, -2, 30], [0, 0, 0, 1]], dtype=float)
    bone = joint(shown, twist=FREE)
    (edge, _), (spokes, _) = limits.limit(bone, palette)[0]
    assert np.allclose(np.linalg.norm(edge - bone.head, axis=1), limits.CONE_SIZE * bone.length)
    assert np.allclose(spokes[::2], bone.head)
    drawn = geometry.drawing(chains(shown), [shown.Active(world, (bone,), None, None)], palette)
    dashed = 3 * 2 * geometry.DASHES
    moved = geometry.transformed(world, np.concatenate([edge, spokes]))
    assert np.allclose(drawn.edges.points[dashed:], moved, atol=1e-5)


def test_a_joint_at_a_limit_is_shown_as_such(shown: Any, geometry: Any, limits: Any, palette: Any) -> None:
    calm, tight = (limits.limit(joint(shown, at_limit=at), palette)[0][0][1] for at in (False, True))
    assert calm[:3] == palette.swing[:3]
    assert tight[:3] == palette.at_limit[:3]
    drawn = geometry.drawing(chains(shown), [], palette)
    assert drawn.dots.tolist() == [[0, 0, 1]]


def test_the_plane_is_a_disc_across_its_normal(shown: Any, geometry: Any, palette: Any) -> None:
    centre, normal = np.array([1.0, 2.0, 3.0]), np.array([0.6, 0.0, 0.8])
    world = np.diag([1.0, 1.0, -2.0, 1.0])
    flat = shown.Plane(centre, normal, 1.5)
    drawn = geometry.drawing(chains(shown), [shown.Active(world, (), None, flat)], palette)
    points = drawn.faces.points @ np.diag([1.0, 1.0, -0.5]).astype(np.float32)
    assert np.abs((points - centre) @ normal).max() < 1e-5
    away = np.linalg.norm(points.reshape(-1, 3, 3) - centre, axis=2)
    assert np.allclose(away[:, 0], 0.0, atol=1e-5)
    assert np.allclose(away[:, 1:], 1.5, atol=1e-5)
    assert len(drawn.edges.points) > len(geometry.drawing(chains(shown), [], palette).edges.points)
