"""Characters as animators use them: Rigify's human metarig with four limbs on IK, keyed, posed, skinned."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ik_addon.chains import profile
from ik_addon.core.settings import chain_of
from ik_addon.rig.plan.chain import chain_bones
from ik_addon.solve.problem import Floats
from tests import rigs

from .metarig import add_human, human
from .skin import add_skin

FRAMES = 250
KEYED = np.arange(-9, FRAMES + 12, 10, dtype=np.float64)
"""The frames of the keys."""
EACH = np.arange(0, FRAMES + 2, dtype=np.float64)
"""Key frames of targets whose orientation counts: every frame, because curves interpolate orientations differently."""
PERIOD = 60
"""Frames in which a target moves away from the root of its limb and comes back."""
BESIDE = 2.0
"""Meters between characters."""
OURS, BLENDER, NOBODY = "ours", "blender", "nobody"


@dataclass(frozen=True)
class Limb:
    """Two bones with a target, the hand or foot at their end, and the parent of its pole."""

    upper: str
    lower: str
    end: str
    body: str
    towards: tuple[float, float, float]
    """Vector from the limb's root to the middle of its target's motion."""
    preset: str


LIMBS = tuple(
    limb
    for letter, side in (("L", 1.0), ("R", -1.0))
    for limb in (
        Limb(
            f"upper_arm.{letter}",
            f"forearm.{letter}",
            f"hand.{letter}",
            "spine.003",
            (0.5 * side, -0.7, -0.5),
            "Human_Elbow",
        ),
        Limb(f"thigh.{letter}", f"shin.{letter}", f"foot.{letter}", "spine", (0.05 * side, -0.15, -1.0), "Human_Knee"),
    )
)


@dataclass(frozen=True)
class Character:
    """The kind of character. All bones are keyed, except those that `keyed_limbs` leaves out."""

    keyed_limbs: bool = True
    """The bones posed by IK are keyed as well."""
    controls: bool = False
    """Targets and poles are keyed bones of the same armature rather than keyed empties."""
    presets: bool = False
    """The limbs have limits from presets, and their targets are out of reach on a third of the frames."""
    skinned: bool = False
    """A mesh of 20,000 vertices is deformed and subdivided once."""
    set_up: bool = False
    """Poles are parented to the pelvis and the chest; hands and feet take the orientation of their targets."""
    count: int = 1
    """Number of characters in the scene."""
    others: int = 0
    """Number of other objects in the scene, which nothing animates."""
    more: Callable[[bpy.types.Object], None] | None = None
    """Changes the first character, or what is around it, once it is built."""

    @property
    def solved(self) -> list[str]:
        """Return the bones posed by IK."""
        return [bone for limb in LIMBS for bone in (limb.upper, limb.lower, *([limb.end] if self.set_up else []))]

    @property
    def tips(self) -> list[str]:
        """Return the tip bones of the chains, all of which reach their targets; empty if the targets are too far."""
        if self.presets:
            return []
        return [limb.end if self.set_up else limb.lower for limb in LIMBS]

    def build(self, solver: str) -> list[bpy.types.Object]:
        """Return the armatures of a new scene; their limbs are solved by one of `OURS`, `BLENDER` and `NOBODY`."""
        human()
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        bpy.context.scene.frame_end = FRAMES
        found = []
        for number in range(self.count):
            rng = np.random.default_rng(number)
            ob = add_human(f"character {number}")
            ob.location.x = BESIDE * number
            goals = [_Goals(ob, limb, self, solver, rng) for limb in LIMBS]
            if self.controls:
                _add_controls(goals)
            _key_body(ob, self, rng)
            for goal in goals:
                goal.solve()
            if self.skinned:
                add_skin(ob)
            found.append(ob)
        for number in range(self.others):
            bpy.context.scene.collection.objects.link(bpy.data.objects.new(f"prop {number}", None))
        if self.more is not None:
            self.more(found[0])
        for ob in found:
            ob.ik_addon.live = solver == OURS
        bpy.context.view_layer.update()
        return found


_Goal = tuple[bpy.types.Object, str]
"""A target or a pole: an object, and the name of its bone or an empty string."""


class _Goals:
    """The target and the pole of a limb."""

    def __init__(
        self, ob: bpy.types.Object, limb: Limb, character: Character, solver: str, rng: np.random.Generator
    ) -> None:
        """Choose their places, in the armature's space."""
        self.ob, self.limb, self.character, self.solver = ob, limb, character, solver
        bones = ob.data.bones
        joints = [
            bones[limb.upper].head_local.copy(),
            bones[limb.lower].head_local.copy(),
            bones[limb.lower].tail_local.copy(),
        ]
        length = sum((b - a).length for a, b in pairwise(joints))
        line = joints[2] - joints[0]
        across = (joints[1] - joints[0]) - (joints[1] - joints[0]).project(line)
        rest_pole = joints[1] + 0.5 * length * across.normalized()
        axis = bones[limb.upper].matrix_local.to_3x3().col[0]
        upper = joints[1] - joints[0]
        self.pole_angle = _signed_angle(upper.cross((rest_pole - joints[0]).cross(line)), axis, upper)
        """Blender's pole angle that bends the limb towards the pole; ours is 0 for that."""
        self.times = EACH if character.set_up else KEYED
        away, out = (0.85, 0.3) if character.presets else (0.75, 0.15)
        phase = rng.uniform(0.0, 2.0 * math.pi, 6)
        if character.presets:
            # A sine is above one half for a third of its period: all targets are out of reach then.
            phase[0] = 0.0
        distance = length * (away + out * np.sin(2.0 * math.pi * self.times / PERIOD + phase[0]))
        aim = np.array(limb.towards) + 0.25 * np.sin(self.times[:, None] / (9.0, 13.0, 11.0) + phase[1:4])
        aim /= np.linalg.norm(aim, axis=1)[:, None]
        self.targets = np.array(joints[0]) + distance[:, None] * aim
        self.poles = np.array(rest_pole) + 0.05 * np.sin(KEYED[:, None] / 15.0 + phase[4])
        self.turns = 0.3 * np.sin(self.times / 14.0 + phase[5])

    @property
    def controls(self) -> list[tuple[str, Floats, Floats]]:
        """Return the names, frames and places (F, 3) of the control bones."""
        return [
            (f"{self.limb.end} IK", self.times, self.targets),
            (f"{self.limb.lower} pole", KEYED, self.poles),
        ]

    def solve(self) -> None:
        """Key the target and the pole, and make the limb follow them."""
        target, pole = self._controls() if self.character.controls else self._empties()
        self._attach(target, pole)

    def _controls(self) -> tuple[_Goal, _Goal]:
        """Key the control bones."""
        for name, frames, places in self.controls:
            rest = np.array(self.ob.data.bones[name].head_local)
            key(self.ob, f'pose.bones["{name}"].location', frames, places - rest)
        (target, *_), (pole, *_) = self.controls
        return (self.ob, target), (self.ob, pole)

    def _empties(self) -> tuple[_Goal, _Goal]:
        """Add empties and key them."""
        beside = np.array(self.ob.location)
        target, pole = rigs.empty(f"{self.limb.end} IK"), rigs.empty(f"{self.limb.lower} pole")
        places = self.targets + beside
        if self.character.set_up:
            places = self._turn(target, places)
            self._parent(pole)
        else:
            key(pole, "location", KEYED, self.poles + beside)
        key(target, "location", self.times, places)
        return (target, ""), (pole, "")

    def _turn(self, target: bpy.types.Object, places: Floats) -> Floats:
        """Key the orientation of a target and return its places: ours is reached by the end of the hand or foot."""
        end = self.ob.data.bones[self.limb.end]
        rest = end.matrix_local.to_quaternion()
        turns = [Quaternion((1.0, 0.0, 0.0), turn) @ rest for turn in self.turns.tolist()]
        target.rotation_mode = "QUATERNION"
        key(target, "rotation_quaternion", self.times, np.array(turns))
        if self.solver != OURS:
            return places
        return places + np.array([turn @ Vector((0.0, end.length, 0.0)) for turn in turns])

    def _parent(self, pole: bpy.types.Object) -> None:
        """Parent a pole to the pelvis or the chest."""
        bone = self.ob.data.bones[self.limb.body]
        pole.parent, pole.parent_type, pole.parent_bone = self.ob, "BONE", bone.name
        tail = Matrix.Translation(bone.tail_local) @ bone.matrix_local.to_3x3().to_4x4()
        pole.location = tail.inverted() @ Vector(self.poles[0])

    def _attach(self, target: _Goal, pole: _Goal) -> None:
        """Add a chain or a constraint to the limb."""
        limb, bones = self.limb, self.ob.pose.bones
        tip = bones[limb.lower]
        if self.solver == OURS and self.character.set_up:
            tip = bones[limb.end]
        chain = chain_of(tip)
        chain.chain_length = 3 if tip.name == limb.end else 2
        if self.character.presets and self.solver != NOBODY:
            apply_preset(limb.preset, tip)
        if self.solver == OURS:
            chain.target, chain.target_bone = target
            chain.pole, chain.pole_bone = pole
            chain.use_rotation = self.character.set_up
            chain.is_chain = True
            return
        tip.property_unset("ik_addon")
        if self.solver == BLENDER:
            constraint: Any = tip.constraints.new("IK")
            constraint.chain_count = 2
            constraint.target, constraint.subtarget = target
            constraint.pole_target, constraint.pole_subtarget = pole
            constraint.pole_angle = self.pole_angle
            if self.character.set_up:
                copied: Any = bones[limb.end].constraints.new("COPY_ROTATION")
                copied.target, _ = target


def _signed_angle(a: Vector, b: Vector, axis: Vector) -> float:
    """Return the angle that turns a to b about an axis perpendicular to both."""
    return math.copysign(a.angle(b), a.cross(b).dot(axis))


def apply_preset(name: str, tip: bpy.types.PoseBone) -> None:
    """Give the bones of a chain the limits of a shipped preset."""
    found = profile.profile_of(bpy.context)
    profile.clear(found)
    profile.read_file(profile.SHIPPED / f"{name}.py", found)
    profile.apply(found, chain_bones(tip))


def _add_controls(goals: Sequence[_Goals]) -> None:
    """Add bones along Y without parents, at the first places of targets and poles."""
    ob = goals[0].ob
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    for goal in goals:
        for name, _, places in goal.controls:
            bone = ob.data.edit_bones.new(name)
            bone.head = places[0]
            bone.tail = places[0] + (0.0, 0.1, 0.0)
    bpy.ops.object.mode_set(mode="OBJECT")


def _key_body(ob: bpy.types.Object, character: Character, rng: np.random.Generator) -> None:
    """Key the rotation of the metarig's bones, and the location of its root."""
    unkeyed = [] if character.keyed_limbs else character.solved
    hinges = {limb.lower: _hinge(ob, limb) for limb in LIMBS}
    for bone in human():
        wave = np.sin(KEYED / rng.uniform(6.0, 20.0) + rng.uniform(0.0, 6.0))
        axis, angle = rng.normal(size=3), 0.08 * wave
        if bone.name in hinges:
            axis, angle = hinges[bone.name], 0.8 + 0.3 * wave
        axis = axis / np.linalg.norm(axis)
        turns = np.concatenate([np.cos(angle / 2.0)[:, None], np.sin(angle / 2.0)[:, None] * axis], axis=1)
        if bone.name not in unkeyed:
            key(ob, f'pose.bones["{bone.name}"].rotation_quaternion', KEYED, turns)
    sway = 0.02 * np.sin(KEYED[:, None] / (8.0, 12.0, 10.0))
    key(ob, 'pose.bones["spine"].location', KEYED, sway)


def _hinge(ob: bpy.types.Object, limb: Limb) -> Floats:
    """Return the axis (3,), in the lower bone's space, about which a limb bends further than at rest."""
    upper, lower = ob.data.bones[limb.upper], ob.data.bones[limb.lower]
    axis = (upper.tail_local - upper.head_local).cross(lower.tail_local - lower.head_local)
    return np.array(lower.matrix_local.to_3x3().transposed() @ axis)


def key(ob: bpy.types.Object, path: str, frames: Floats, values: Floats) -> None:
    """Key a property of an object at frames (F,) to values (F, width)."""
    data = ob.animation_data or ob.animation_data_create()
    if data.action is None:
        data.action = bpy.data.actions.new(ob.name)
    for i, column in enumerate(values.T):
        curve = data.action.fcurve_ensure_for_datablock(ob, path, index=i)
        curve.keyframe_points.add(len(frames))
        curve.keyframe_points.foreach_set("co", np.stack([frames, column], axis=1).ravel().astype(np.float32))
        curve.update()
