"""Clips of feet, made from the contacts and places in `contacts/`, with the slide and noise of a recording."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Marks = list[tuple[int, int]]

CONTACTS = Path(__file__).parent / "contacts"
MADE = ("run", "turn", "stairs")
LEG = 0.9
HEEL, TOE = np.array([0.0, -0.06, -0.08]), np.array([0.0, 0.14, -0.08])
"""Where a foot touches, relative to its ankle, in the ankle's axes: Y forward, Z up."""
LANDING, LEAVING = 0.35, 0.8
"""Tilt of a foot, in radians, when it begins to touch and when it leaves."""
CLEARANCE = 0.06
NOISE, SLIDE = 0.0003, 0.008
"""Errors of a recording, in meters: from frame to frame, and along each contact."""


@dataclass
class Foot:
    """One foot over F frames."""

    frames: Array
    """Ankle matrices (F, 4, 4); the first is frame 1."""
    marks: dict[str, Marks]
    """First and last frames of contacts of "heel" and "toe", at the clip's own frame rate."""

    def path(self, point: Array) -> Array:
        """Return the positions (F, 3) of a point of the foot."""
        return self.frames[:, :3, :3] @ point + self.frames[:, :3, 3]


@dataclass
class Clip:
    """Feet over F frames."""

    rate: float
    feet: dict[str, Foot]
    """By side."""


def read(name: str) -> dict[str, Any]:
    """Return the description of a clip."""
    noted: dict[str, Any] = json.loads((CONTACTS / f"{name}.json").read_text(encoding="utf-8"))
    return noted


def marks_of(noted: dict[str, Any]) -> dict[str, Marks]:
    """Return the contacts of a foot."""
    return {part: [(first, last) for first, last in noted[part]] for part in ("heel", "toe")}


def make(name: str, *, is_recorded: bool = True, rate: float | None = None) -> Clip:
    """Make a clip, optionally without a recording's errors or at another frame rate."""
    noted = read(name)
    random = np.random.default_rng(len(name))
    sides = {side: noted[side] for side in ("Left", "Right")}
    count = max(last for side in sides.values() for part in ("heel", "toe") for _first, last in side[part]) + 8
    step = 1.0 if rate is None else noted["rate"] / rate
    times = np.arange(1.0, count + 1e-6, step)
    feet = {}
    for side, own in sides.items():
        held = noted["held"]["frames"] if noted.get("held", {}).get("side") == side else None
        frames = np.array([_pose(own, time, held) for time in times.tolist()])
        if is_recorded:
            frames[:, :3, 3] += random.normal(0.0, NOISE, (len(frames), 3))
            for first, last in zip(*(np.array(own[part]) for part in ("heel", "toe")), strict=True):
                start, end = min(first[0], last[0]), max(first[1], last[1])
                way = random.normal(0.0, 1.0, 2)
                during = (times > start - 1e-6) & (times < end + 1e-6)
                share = (times[during] - start) / (end - start) - 0.5
                frames[during, :2, 3] += SLIDE * share[:, None] * way / np.linalg.norm(way)
        feet[side] = Foot(frames, marks_of(own))
    return Clip(noted["rate"] / step, feet)


def _pose(own: dict[str, Any], frame: float, held: list[int] | None) -> Array:
    """Return the ankle matrix (4, 4) on a frame."""
    steps = list(zip(own["heel"], own["toe"], own["places"], strict=True))
    for heel, toe, place in steps:
        if min(heel[0], toe[0]) <= frame <= max(heel[1], toe[1]):
            return _standing(heel, toe, place, frame)
    after = next((k for k, (heel, toe, _) in enumerate(steps) if min(heel[0], toe[0]) > frame), len(steps))
    if after == 0 or after == len(steps):  # a step whose other end is outside the clip
        heel, toe, place = steps[min(after, len(steps) - 1)]
        edge = min(heel[0], toe[0]) if after == 0 else max(heel[1], toe[1])
        pose = _standing(heel, toe, place, edge)
        gone = abs(frame - edge) / 20.0
        pose[:3, 3] += np.array([0.0, np.sign(frame - edge) * 1.5 * gone**1.2, CLEARANCE * 4.0 * gone])
        return pose
    start, end = max(steps[after - 1][0][1], steps[after - 1][1][1]), min(steps[after][0][0], steps[after][1][0])
    first, last = _standing(*steps[after - 1], start), _standing(*steps[after], end)
    if held is not None and start < held[0] < end:
        still = _between(first, last, 0.6)
        if held[0] <= frame <= held[1]:
            return still
        if frame < held[0]:
            return _between(first, last, 0.6 * _eased((frame - start) / (held[0] - start)))
        return _between(first, last, 0.6 + 0.4 * _eased((frame - held[1]) / (end - held[1])))
    return _between(first, last, _eased((frame - start) / (end - start)))


def _eased(share: float) -> float:
    return share * share * (3.0 - 2.0 * share)


def _between(first: Array, last: Array, share: float) -> Array:
    """Return a pose between two others, lifted."""
    pitches = [np.arctan2(pose[2, 1], pose[2, 2]) for pose in (first, last)]
    yaws = [np.arctan2(-pose[0, 1], pose[1, 1]) for pose in (first, last)]
    turn = (yaws[1] - yaws[0] + np.pi) % (2.0 * np.pi) - np.pi
    early = 1.0 - (1.0 - share) ** 3  # feet rise over a stair's edge before they move forward
    pose = _turned(yaws[0] + share * turn, pitches[0] + early * (pitches[1] - pitches[0]))
    pose[:3, 3] = first[:3, 3] + np.array([share, share, early]) * (last[:3, 3] - first[:3, 3])
    pose[2, 3] += CLEARANCE * 4.0 * share * (1.0 - share)
    return pose


def _standing(heel: list[int], toe: list[int], place: list[float], frame: float) -> Array:
    """Return the pose of a foot in contact: it rolls about the heel or the toe, or stands flat."""
    pitch, pivot = 0.0, HEEL
    if frame < toe[0]:
        pitch, pivot = LANDING * (toe[0] - frame) / (toe[0] - heel[0]), HEEL
    elif frame < heel[0]:
        pitch, pivot = -LANDING * (heel[0] - frame) / (heel[0] - toe[0]), TOE
    elif frame > heel[1]:
        pitch, pivot = -LEAVING * (frame - heel[1]) / (toe[1] - heel[1]), TOE
    yaw = np.radians(place[3])
    pose = _turned(yaw, 0.0)
    pose[:3, 3] = np.array(place[:3]) - pose[:3, :3] @ np.array([0.0, 0.0, HEEL[2]])
    touching = pose[:3, :3] @ pivot + pose[:3, 3]
    pose[:3, :3] = _turned(yaw, pitch)[:3, :3]
    pose[:3, 3] = touching - pose[:3, :3] @ pivot
    return pose


def _turned(yaw: float, pitch: float) -> Array:
    """Return a rotation about Z, followed by a tilt: toes up."""
    c, s, a, b = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch)
    pose = np.eye(4)
    pose[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array([[1, 0, 0], [0, a, -b], [0, b, a]])
    return pose
