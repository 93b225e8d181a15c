"""Synthetic motions as BVH files: running, crawling, sitting down and standing up, cartwheels.

The skeleton is like those of motion capture: Y is up, it faces Z in a T-pose, and its limbs are straight at rest. In
some motions, knees and elbows lock, and hyperextend by some degrees.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

Angles = Mapping[str, tuple[float, float, float]]
"""Joint angles in degrees about Z, X and Y, by name."""

Pose = tuple[tuple[float, float, float], tuple[float, float, float], Angles]
"""Location of the hips, rotation of the hips, and the angles of all other joints."""
FRAMES = 60
SKELETON = """
Hips 0 95 0
  LeftUpLeg 9 -4 0
    LeftLeg 0 -42 0
      LeftFoot 0 -41 0
        LeftToeBase 0 -6 13
          LeftToe_End 0 0 6
  RightUpLeg -9 -4 0
    RightLeg 0 -42 0
      RightFoot 0 -41 0
        RightToeBase 0 -6 13
          RightToe_End 0 0 6
  Spine 0 12 0
    Spine1 0 18 0
      Neck 0 20 0
        Head 0 10 2
          Head_End 0 18 0
      LeftShoulder 3 14 0
        LeftArm 14 0 0
          LeftForeArm 27 0 0
            LeftHand 25 0 0
              LeftHand_End 9 0 0
      RightShoulder -3 14 0
        RightArm -14 0 0
          RightForeArm -27 0 0
            RightHand -25 0 0
              RightHand_End -9 0 0
"""
"""Offsets in centimeters, children indented under their parents."""


def _legs(hip: tuple[float, float], knee: tuple[float, float], spread: float = 0.0, turn: float = 0.0) -> Angles:
    """Return legs that swing forward at the hips, bend at the knees, and spread apart."""
    found: dict[str, tuple[float, float, float]] = {}
    for i, (side, sign) in enumerate((("Left", 1.0), ("Right", -1.0))):
        found[f"{side}UpLeg"] = sign * spread, -hip[i], sign * turn
        found[f"{side}Leg"] = 0.0, knee[i], 0.0
        found[f"{side}Foot"] = 0.0, 0.4 * (hip[i] - knee[i]), 0.0
    return found


def _arms(down: float, forward: tuple[float, float], elbow: tuple[float, float]) -> Angles:
    """Return arms that hang down by some degrees, swing forward, and bend at the elbows."""
    found: dict[str, tuple[float, float, float]] = {}
    for i, (side, sign) in enumerate((("Left", 1.0), ("Right", -1.0))):
        found[f"{side}Arm"] = -sign * down, 0.0, -sign * forward[i]
        found[f"{side}ForeArm"] = 0.0, 0.0, -sign * elbow[i]
    return found


def _run(t: float) -> Pose:
    s, o = math.sin(t), math.sin(t + math.pi)
    knees = 55.0 - 50.0 * math.sin(t - 0.9), 55.0 - 50.0 * math.sin(t + math.pi - 0.9)
    angles = {**_legs((20.0 + 40.0 * s, 20.0 + 40.0 * o), knees), **_arms(65.0, (45.0 * o, 45.0 * s), (85.0, 85.0))}
    return (0.0, 95.0 + 4.0 * math.cos(2.0 * t), 60.0 * t), (0.0, 12.0, 6.0 * s), angles


def _crawl(t: float) -> Pose:
    s, o = math.sin(t), math.sin(t + math.pi)
    legs = _legs((85.0 + 20.0 * s, 85.0 + 20.0 * o), (95.0 + 15.0 * o, 95.0 + 15.0 * s), 6.0)
    return (
        (0.0, 50.0, 15.0 * t),
        (0.0, 80.0, 4.0 * s),
        {**legs, **_arms(5.0, (75.0 + 20.0 * o, 75.0 + 20.0 * s), (22.0 + 20.0 * s, 22.0 + 20.0 * o))},
    )


def _sit(t: float) -> Pose:
    down = 0.5 - 0.5 * math.cos(t)
    knee = -3.0 + 98.0 * down
    legs = _legs((95.0 * down, 93.0 * down), (knee, knee + 1.0), 4.0 * down, 6.0 * down)
    return (
        (0.0, 95.0 - 45.0 * down, -20.0 * down),
        (0.0, 30.0 * math.sin(t) ** 2, 0.0),
        {**legs, **_arms(70.0, (40.0 * down, 35.0 * down), (-2.0 + 60.0 * down, 50.0 * down))},
    )


def _cartwheel(t: float) -> Pose:
    spread = 20.0 - 20.0 * math.cos(t)
    knees = 2.0 + 5.0 * math.sin(2.0 * t), 2.0 - 5.0 * math.sin(2.0 * t)
    angles = {
        **_legs((5.0 * math.sin(t), -5.0 * math.sin(t)), knees, spread),
        **_arms(-65.0, (5.0, 5.0), (3.0 + 5.0 * math.sin(t), 3.0 - 5.0 * math.sin(t))),
    }
    return (50.0 * t, 95.0 - 10.0 * math.sin(0.5 * t) ** 2, 0.0), (-math.degrees(t), 0.0, 0.0), angles


MOTIONS: Mapping[str, Callable[[float], Pose]] = {"run": _run, "crawl": _crawl, "sit": _sit, "cartwheel": _cartwheel}
"""Motions by name, as functions of a phase that runs from 0 to a full turn."""


def write(motion: str, path: Path) -> Path:
    """Write a motion as a BVH file with 60 frames per second."""
    names: list[str] = []
    lines, depth = ["HIERARCHY"], 0

    def close(to: int) -> None:
        nonlocal depth
        while depth > to:
            depth -= 1
            lines.append("}")

    for text in SKELETON.strip("\n").splitlines():
        name, *offset = text.split()
        close((len(text) - len(text.lstrip())) // 2)
        is_end = name.endswith("_End")
        lines += [
            f"{'End Site' if is_end else ('JOINT ' if names else 'ROOT ') + name}",
            "{",
            f"OFFSET {' '.join(offset)}",
        ]
        if not is_end:
            channels = "CHANNELS 3" if names else "CHANNELS 6 Xposition Yposition Zposition"
            lines.append(f"{channels} Zrotation Xrotation Yrotation")
            names.append(name)
        depth += 1
    close(0)
    lines += ["MOTION", f"Frames: {FRAMES}", f"Frame Time: {1.0 / 60.0:.7f}"]
    for frame in range(FRAMES):
        place, turn, angles = MOTIONS[motion](2.0 * math.pi * frame / (FRAMES - 1))
        values = [*place, *turn, *(v for name in names[1:] for v in angles.get(name, (0.0, 0.0, 0.0)))]
        lines.append(" ".join(f"{value:.6f}" for value in values))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
