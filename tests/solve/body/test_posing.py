"""Posing a whole body: pins and limits hold, the body follows, and the pose depends only on the target."""

from dataclasses import replace

import numpy as np
import pytest

from ik_addon.solve import Body, Grab, Pin, PosedBody, Poser, pose_body
from ik_addon.solve.maths.rotations import about_vectors, matrices
from ik_addon.solve.problem import Floats

from .figures import BONE, broken, figure, turned, turns

HEIGHT = 1.75
FEET = (Pin(BONE["foot.L"]), Pin(BONE["foot.R"]))
HAND = BONE["hand.L"]


def drag(body: Body, name: str, offset: tuple[float, float, float], pins: tuple[Pin, ...] = FEET) -> PosedBody:
    """Drag a bone by its head."""
    return pose_body(body, pins, [Grab(BONE[name], body.heads[BONE[name]] + offset)])


def directions(count: int, seed: int) -> Floats:
    found = np.random.default_rng(seed).normal(size=(count, 3))
    return found / np.linalg.norm(found, axis=1)[:, None]


def sphere(body: Body, count: int) -> Floats:
    """Return places all around the left shoulder, at the hand's distance at rest."""
    shoulder = body.heads[BONE["arm.L"]]
    return shoulder + np.linalg.norm(body.heads[HAND] - shoulder) * directions(count, 3)


def assert_rigid(body: Body, posed: PosedBody) -> None:
    """Assert that each bone but the root is where its parent takes it."""
    for bone, parent in enumerate(body.parents.tolist()):
        if parent >= 0:
            seen = body.frames[parent].T @ (body.heads[bone] - body.heads[parent])
            np.testing.assert_allclose(posed.heads[parent] + posed.frames[parent] @ seen, posed.heads[bone], atol=1e-9)
    np.testing.assert_allclose(
        np.einsum("nij,nik->njk", posed.frames, posed.frames), np.tile(np.eye(3), (15, 1, 1)), atol=1e-9
    )


def test_a_hand_moves_all_around_its_shoulder_while_pins_and_limits_hold() -> None:
    body = figure()
    poser = Poser(body, FEET, [Grab(HAND, np.zeros(3))])
    missed = []
    for target in sphere(body, 60):
        posed = poser.pose([target])
        assert posed.pin_error < 1e-4 * HEIGHT
        assert np.degrees(posed.pin_turn) < 0.1
        assert broken(body, posed).max() < 1e-6
        assert_rigid(body, posed)
        missed.append(posed.error)
    assert np.mean(np.array(missed) < 1e-3 * HEIGHT) >= 0.95


def test_reported_errors_are_correct() -> None:
    body = figure()
    target = body.heads[HAND] + (0.1, -2.0, 0.5)
    posed = pose_body(body, FEET, [Grab(HAND, target)])
    assert posed.error == pytest.approx(np.linalg.norm(posed.heads[HAND] - target), rel=1e-9)
    assert posed.error > 0.3
    feet = [pin.bone for pin in FEET]
    assert posed.pin_error == pytest.approx(np.linalg.norm((posed.heads - body.heads)[feet], axis=1).max(), abs=1e-12)


def test_nothing_moves_if_the_target_is_at_the_joint() -> None:
    body = figure()
    posed = drag(body, "hand.L", (0.0, 0.0, 0.0))
    np.testing.assert_allclose(posed.heads, body.heads, atol=1e-12)
    np.testing.assert_allclose(posed.frames, body.frames, atol=1e-12)


def test_the_pose_depends_only_on_the_target() -> None:
    body = figure()
    poser = Poser(body, FEET, [Grab(HAND, np.zeros(3))])
    way = body.heads[HAND] + np.linspace((0.0, 0.0, 0.0), (-0.4, -0.6, 0.5), 12)
    there = [poser.pose([place]) for place in way]
    back = [poser.pose([place]) for place in way[::-1]][::-1]
    for one, other in zip(there, back, strict=True):
        np.testing.assert_array_equal(one.frames, other.frames)
        np.testing.assert_array_equal(one.heads, other.heads)


def test_small_moves_of_the_hand_move_joints_little() -> None:
    body = figure()
    poser = Poser(body, FEET, [Grab(HAND, np.zeros(3))])
    shoulder, reach = body.heads[BONE["arm.L"]], 0.5
    step = 0.0184  # 1 cm
    starts = np.linspace(-2.2, 2.2 - step, 40)  # from far behind across the front to above
    angles = np.stack([starts, starts + step], axis=1).ravel()
    circle = np.stack([np.cos(angles) * 0.6, -np.cos(angles), np.sin(angles)], axis=1)
    poses = [poser.pose([shoulder + reach * point / np.linalg.norm(point)]) for point in circle]
    speeds = np.array([turns(body, *pair).max() for pair in zip(poses[::2], poses[1::2], strict=True)])
    assert np.mean(speeds < 5.0) >= 0.99


def test_hips_move_over_pinned_feet() -> None:
    body = figure()
    for offset in ((0.0, 0.0, -0.4), (0.2, 0.0, -0.2), (-0.1, -0.15, -0.3), (0.0, 0.15, -0.1)):
        posed = drag(body, "hips", offset)
        assert posed.error < 1e-4 * HEIGHT, offset
        assert posed.pin_error < 1e-4 * HEIGHT
        assert broken(body, posed).max() < 1e-6


def test_the_hips_follow_when_a_hand_goes_far() -> None:
    body = figure()
    near, far = (drag(body, "hand.L", (0.0, -share, -0.2)).heads[0] - body.heads[0] for share in (0.05, 0.9))
    assert np.linalg.norm(far) > 0.05
    assert np.linalg.norm(far) > 3.0 * np.linalg.norm(near)


def test_bones_off_the_path_keep_their_joints() -> None:
    body = figure()
    posed = drag(body, "hand.L", (0.1, -0.4, 0.2))
    moved = turns(body, body, posed)
    for name in ("head", "arm.R", "forearm.R", "hand.R", "hand.L"):
        assert moved[BONE[name]] < 1e-6, name
    for name in ("arm.L", "forearm.L", "chest"):
        assert moved[BONE[name]] > 1.0, name


def test_without_a_root_only_joints_turn() -> None:
    body = replace(figure(), root=None)
    posed = drag(body, "hand.L", (0.1, -0.4, 0.2), pins=())
    np.testing.assert_array_equal(posed.heads[0], body.heads[0])
    assert posed.error < 1e-3


def test_a_bone_with_more_give_turns_more() -> None:
    found = []
    for give in (0.0, 0.2, 1.0, 5.0):
        gives = np.ones(15)
        gives[BONE["chest"]] = give
        body = replace(figure(), give=gives)
        found.append(turns(body, body, drag(body, "hand.L", (0.1, -0.5, 0.2)))[BONE["chest"]])
    assert found == sorted(found)
    assert found[0] < 1e-9
    assert found[3] > 1.5 * found[1] > 0.0


def test_a_joint_that_turns_far_leaves_more_to_the_others() -> None:
    """With an orientation goal that turns the hand a little, and far."""
    body = figure(limits=False)
    hardening = np.zeros(len(body.parents))
    hardening[HAND] = 0.5
    body = replace(body, hardening=hardening)
    grab = (BONE["hand.L"], BONE["forearm.L"], BONE["arm.L"], BONE["chest"])
    share = []
    for angle in (0.4, 1.6):
        wanted = matrices(about_vectors(np.array([[0.0], [0.0], [angle]])))[..., 0] @ body.frames[grab[0]]
        posed = pose_body(body, FEET, [Grab(grab[0], None, rotation=wanted)])
        own = turns(body, body, posed)
        share.append(own[grab[0]] / sum(own[list(grab)]))
    assert share[1] < share[0] - 0.01


def test_the_root_turns_by_half_a_turn() -> None:
    body = figure(limits=False)
    body = replace(body, hardening=np.full(len(body.parents), 0.5))
    wanted = matrices(about_vectors(np.array([[0.0], [0.0], [3.1]])))[..., 0] @ body.frames[BONE["hips"]]
    posed = pose_body(body, (), [Grab(BONE["hips"], None, rotation=wanted)])
    np.testing.assert_allclose(posed.frames[BONE["hips"]], wanted, atol=1e-5)


def test_pins_hold_a_place_an_orientation_or_both() -> None:
    body = figure()
    right = BONE["hand.R"]
    away = (0.6, -0.4, -0.3)
    for pin in (Pin(right, rotation=False), Pin(right, location=False), Pin(right)):
        posed = drag(body, "hand.L", away, (*FEET, pin))
        stays = np.linalg.norm(posed.heads[right] - body.heads[right]) < 1e-4
        turn = np.abs(posed.frames[right] - body.frames[right]).max() < 1e-3
        assert (bool(stays), bool(turn)) == (pin.location, pin.rotation)


def test_a_pin_of_limited_strength_yields_to_a_hard_one() -> None:
    body = figure()
    head = BONE["head"]
    turned_by = []
    for strength in (0.01, 0.1, 100.0):
        posed = drag(body, "hand.L", (0.0, -0.7, 0.0), (*FEET, Pin(head, location=False, strength=strength)))
        assert posed.pin_error < 1e-4 * HEIGHT
        turned_by.append(float(np.abs(posed.frames[head] - body.frames[head]).max()))
    assert turned_by[0] > turned_by[1] > turned_by[2]
    assert turned_by[2] < 0.05 * turned_by[0]


def test_a_grab_takes_an_orientation() -> None:
    body = figure()
    wanted = matrices(about_vectors(np.array([0.3, 0.8, -0.4])[:, None]))[..., 0] @ body.frames[HAND]
    posed = pose_body(body, FEET, [Grab(HAND, body.heads[HAND] + (0.0, -0.2, 0.1), rotation=wanted)])
    np.testing.assert_allclose(posed.frames[HAND], wanted, atol=1e-4)
    assert posed.error < 1e-4


def test_a_grab_can_take_an_orientation_alone() -> None:
    body = figure()
    head = BONE["head"]
    wanted = matrices(about_vectors(np.array([0.2, 0.1, 0.5])[:, None]))[..., 0] @ body.frames[head]
    target = body.heads[HAND] + (0.0, -0.3, 0.1)
    posed = pose_body(body, FEET, [Grab(head, None, rotation=wanted), Grab(HAND, target)])
    np.testing.assert_allclose(posed.frames[head], wanted, atol=1e-4)
    assert posed.error < 1e-4
    assert np.linalg.norm(posed.heads[HAND] - target) == pytest.approx(posed.error, abs=1e-12)
    assert np.linalg.norm(posed.heads[head] - body.heads[head]) > 0.005, "it goes where the body takes it"


def test_any_point_of_a_bone_can_be_dragged() -> None:
    body = figure()
    tip, offset = np.array([0.8, 0.0, 1.17]), np.array([0.0, -0.2, 0.1])
    posed = pose_body(body, FEET, [Grab(HAND, tip + offset, point=tip)])
    there = posed.heads[HAND] + posed.frames[HAND] @ (body.frames[HAND].T @ (tip - body.heads[HAND]))
    np.testing.assert_allclose(there, tip + offset, atol=1e-3)


def test_a_bone_outside_of_its_limits_goes_no_further() -> None:
    body = turned(figure(), "shin.L", (-0.4, 0.0, 0.0))
    body = turned(body, "shin.R", (0.0, 0.0, 0.2))
    outside = broken(body, body)
    assert outside[BONE["shin.L"]] > 0.3
    assert outside[BONE["shin.R"]] > 0.1
    for direction in directions(12, 5):
        posed = pose_body(body, FEET, [Grab(0, body.heads[0] + 0.3 * direction)])
        assert (broken(body, posed) <= outside + 1e-6).all()
        assert posed.pin_error < 1e-3


def test_a_moved_turned_and_scaled_body_is_posed_the_same() -> None:
    body = figure()
    turn = matrices(about_vectors(np.array([0.5, -1.1, 2.0])[:, None]))[..., 0]
    size, place = 100.0, np.array([3.0, -5.0, 20.0])
    other = replace(body, heads=size * body.heads @ turn.T + place, frames=turn @ body.frames)
    target = body.heads[HAND] + (0.0, -0.5, 0.3)
    one = pose_body(body, FEET, [Grab(HAND, target)])
    moved = pose_body(other, FEET, [Grab(HAND, size * turn @ target + place)])
    np.testing.assert_allclose(moved.frames, turn @ one.frames, atol=1e-5)
    np.testing.assert_allclose(moved.heads, size * one.heads @ turn.T + place, atol=1e-5 * size)


def test_joints_at_limits_are_reported() -> None:
    body = figure()
    posed = drag(body, "hand.L", (-0.3, -0.9, -0.6))
    assert posed.at_limit.any()
    assert not posed.at_limit[[BONE["arm.L"], BONE["forearm.L"]]].any(), "they have none"


def test_a_pin_on_a_bone_that_cannot_move_is_harmless() -> None:
    body = replace(figure(), root=BONE["chest"])
    posed = drag(body, "hand.L", (0.1, -0.2, 0.1))
    assert posed.error < 1e-3
    np.testing.assert_array_equal(posed.heads[BONE["foot.L"]], body.heads[BONE["foot.L"]])
    with pytest.raises(ValueError, match="not below the root"):
        drag(body, "foot.L", (0.0, 0.0, 0.1))


def test_an_orientation_that_no_joint_can_turn_holds() -> None:
    gives = np.ones(15)
    gives[0] = 0.0
    body = replace(figure(), root=None, give=gives)
    pins = (Pin(0, location=False),)
    posed = drag(body, "hand.L", (0.1, -0.4, 0.2), pins=pins)
    assert posed.pin_turn == 0.0
    np.testing.assert_array_equal(posed.frames, drag(body, "hand.L", (0.1, -0.4, 0.2), pins=()).frames)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"heads": np.zeros((3, 3))}, "heads must have the shape"),
        ({"parents": np.arange(15)}, "parents must name an earlier bone"),
        ({"root": 15}, "root must be the index"),
        ({"give": np.full(15, np.nan)}, "give must be finite"),
    ],
)
def test_a_malformed_body_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pose_body(replace(figure(), **change), FEET, [Grab(HAND, np.zeros(3))])


def test_invalid_targets_and_bones_are_refused() -> None:
    body = figure()
    with pytest.raises(ValueError, match="1 finite points"):
        drag(body, "hand.L", (np.nan, 0.0, 0.0))
    with pytest.raises(ValueError, match="index of one of the 15 bones"):
        pose_body(body, [Pin(15)], [])
