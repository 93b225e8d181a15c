"""Characters as productions have them: other add-ons, NLA, drivers, constraints, large scenes, rigs by Rigify."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ik_addon.bake import baking
from ik_addon.core import compat
from ik_addon.core.goals import path_of
from ik_addon.core.settings import chain_of
from ik_addon.rig.plan import chain
from ik_addon.targets.movable import goals_of
from tests import rigs

from .characters import BLENDER, FRAMES, KEYED, OURS, Character, key
from .metarig import add_human, human
from .playback import Play, case
from .timing import Case, Run

OF_THE_FLOOR = 1.5
"""The most that a played frame may cost, in multiples of the floor."""


def with_foreign_handler(_ob: bpy.types.Object) -> None:
    """Add a frame handler of another add-on, which does nothing; Blender drops it when the next file is opened."""

    def nothing(_scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph) -> None:
        pass

    bpy.app.handlers.frame_change_post.append(nothing)


def in_strip(ob: bpy.types.Object) -> None:
    """Push the keys of the body down into an NLA strip."""
    rigs.into_strip(ob)


def with_muted_track(ob: bpy.types.Object) -> None:
    """Keep another version of the motion in an NLA track that is muted."""
    animation = ob.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("other version", 1, animation.action.copy())
    track.mute = True


def with_driver(ob: bpy.types.Object) -> None:
    """Drive the location of one thigh."""
    curve: Any = ob.pose.bones["thigh.L"].driver_add("location", 0)
    curve.driver.expression = "0.00005 * frame"


def with_constraint(ob: bpy.types.Object) -> None:
    """Limit the scale of one shoulder; on a bone of a chain a constraint is refused."""
    limit: Any = ob.pose.bones["shoulder.L"].constraints.new("LIMIT_SCALE")
    limit.use_min_x = limit.use_max_x = True
    limit.min_x = limit.max_x = 1.0


def with_child_of(ob: bpy.types.Object) -> None:
    """Let the chest carry the target of one hand."""
    chest = ob.data.bones["spine.003"]
    constraint: Any = bpy.data.objects["hand.L IK"].constraints.new("CHILD_OF")
    constraint.target, constraint.subtarget = ob, chest.name
    constraint.inverse_matrix = (Matrix.Translation(ob.location) @ chest.matrix_local).inverted()


CONTROLS = (
    "torso hips chest neck head shoulder.L shoulder.R hand_ik.L hand_ik.R foot_ik.L foot_ik.R thigh_ik.L thigh_ik.R "
    "upper_arm_ik.L upper_arm_ik.R foot_spin_ik.L foot_spin_ik.R toe_ik.L toe_ik.R breast.L breast.R jaw_master eyes "
    + " ".join(
        f"{finger}.01_master.{side}"
        for finger in ("thumb", "f_index", "f_middle", "f_ring", "f_pinky")
        for side in "LR"
    )
).split()
"""Controls of the generated human that are keyed, as with a keying set for the whole character."""
MOVED = ("torso", "hand_ik.L", "hand_ik.R", "foot_ik.L", "foot_ik.R")
"""Controls whose location is keyed as well."""


@dataclass(frozen=True)
class Rigify:
    """The human that Rigify generates, with its own controls keyed; ours is its IK after Convert IK."""

    keyed_limbs: bool = True
    presets: bool = False

    @property
    def solved(self) -> list[str]:
        """Return the bones posed by IK."""
        limbs = (("thigh_ik", "MCH-shin_ik"), ("upper_arm_ik", "MCH-forearm_ik"))
        return [f"{bone}.{side}" for side in "LR" for limb in limbs for bone in limb]

    @property
    def tips(self) -> list[str]:
        """Return the tip bones of the chains."""
        return self.solved[1::2]

    def build(self, solver: str) -> list[bpy.types.Object]:
        """Return the armature of a new scene; its limbs are solved by one of `OURS`, `BLENDER` and `NOBODY`."""
        file = generated()
        rigs.new_file()
        bpy.context.scene.frame_end = FRAMES
        libraries: Any = bpy.data.libraries
        with libraries.load(str(file)) as (there, here):
            here.objects = there.objects
        (ob,) = (ob for ob in here.objects if ob.type == "ARMATURE")
        bpy.context.scene.collection.objects.link(ob)
        bpy.context.view_layer.objects.active = ob
        if solver != BLENDER:
            bpy.ops.object.mode_set(mode="POSE")
            bpy.ops.ik_addon.convert_constraints()
            bpy.ops.object.mode_set(mode="OBJECT")
            ob.ik_addon.live = False
        _key_controls(ob)
        ob.ik_addon.live = solver == OURS
        bpy.context.view_layer.update()
        return [ob]


@dataclass(frozen=True)
class SetUp:
    """The human metarig after Set Up Character, the targets of all its chains keyed; Blender's has the same chains."""

    keyed_limbs: bool = False
    presets: bool = True

    @property
    def solved(self) -> list[str]:
        """Return the bones posed by IK."""
        limbs = ("thigh", "shin", "foot", "upper_arm", "forearm", "hand")
        return [*(f"spine.{i:03d}" for i in range(1, 7)), *(f"{bone}.{side}" for bone in limbs for side in "LR")]

    @property
    def tips(self) -> list[str]:
        """Return no chains: spine and head are too short for some of their targets."""
        return []

    def build(self, solver: str) -> list[bpy.types.Object]:
        """Return the armature of a new scene; its chains are solved by one of `OURS`, `BLENDER` and `NOBODY`."""
        human()
        rigs.new_file()
        bpy.context.scene.frame_end = FRAMES
        ob = add_human("character")
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.ik_addon.character_setup()
        bpy.ops.object.mode_set(mode="OBJECT")
        rng = np.random.default_rng(0)
        for tip in chain.tips(ob):
            target, *_ = goals_of(tip)
            sway = 0.02 * np.sin(KEYED[:, None] / (8.0, 12.0, 10.0) + rng.uniform(0.0, 6.0, 3))
            key(target.ob, path_of(target.holder, "location"), KEYED, np.array(target.holder.location) + sway)
            if solver == BLENDER:
                _constrain(tip, chain_of(tip))
        ob.ik_addon.live = solver == OURS
        bpy.context.view_layer.update()
        return [ob]


def _constrain(tip: bpy.types.PoseBone, own: Any) -> None:
    """Add Blender's constraints that do what a chain does."""
    ik: Any = tip.constraints.new("IK")
    ik.chain_count, ik.use_rotation = own.chain_length, own.use_rotation
    ik.target, ik.subtarget = own.target, own.target_bone
    ik.pole_target, ik.pole_subtarget = own.pole, own.pole_bone
    if own.use_end_rotation:
        copied: Any = tip.id_data.pose.bones[own.end_bone].constraints.new("COPY_ROTATION")
        copied.target, copied.subtarget = own.target, own.target_bone


@cache
def generated() -> Path:
    """Return a file with the human that Rigify generates, which takes seconds. Replaces the open file."""
    rigs.new_file()
    addon_utils: Any = importlib.import_module("addon_utils")
    addon_utils.enable("rigify", default_set=True)
    bpy.ops.object.armature_human_metarig_add()
    meta = bpy.context.object
    bpy.ops.pose.rigify_generate()
    (ob,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != meta)
    file = Path(tempfile.mkdtemp(prefix="ik-addon-")) / "rigify.blend"
    bpy.data.libraries.write(str(file), {ob})
    addon_utils.disable("rigify", default_set=True)
    for handler in [h for h in bpy.app.handlers.load_post if h.__module__.startswith("rigify")]:
        bpy.app.handlers.load_post.remove(handler)
    return file


def _key_controls(ob: bpy.types.Object) -> None:
    """Key controls every ten frames."""
    rng = np.random.default_rng(0)
    for name in CONTROLS:
        bone, path = ob.pose.bones[name], f'pose.bones["{name}"]'
        wave = np.sin(KEYED / rng.uniform(6.0, 20.0) + rng.uniform(0.0, 6.0))
        axis = rng.normal(size=3)
        angle = 0.05 * wave[:, None]
        if bone.rotation_mode == "QUATERNION":
            turns = np.concatenate([np.cos(angle), np.sin(angle) * axis / np.linalg.norm(axis)], axis=1)
            key(ob, f"{path}.rotation_quaternion", KEYED, turns)
        else:
            key(ob, f"{path}.rotation_euler", KEYED, angle * axis)
        if name in MOVED:
            key(ob, f"{path}.location", KEYED, 0.03 * np.sin(KEYED[:, None] / (8.0, 12.0, 10.0) + rng.uniform(0, 6, 3)))


def baked(solver: str, _number: int) -> Run:
    """Return the seconds that baking the limbs of a generated human takes."""
    scene = Rigify()
    (ob,) = scene.build(solver)
    start = time.perf_counter()
    if solver == OURS:
        assert baking.bake(bpy.context, ob, scene.tips, range(1, FRAMES + 1)).plays_alike
        return Run(time.perf_counter() - start)
    ob.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    for name in scene.solved:
        compat.select_bone(ob.pose.bones[name], extend=True)
    start = time.perf_counter()
    bpy.ops.nla.bake(
        frame_start=1,
        frame_end=FRAMES,
        only_selected=True,
        visual_keying=True,
        clear_constraints=True,
        bake_types={"POSE"},
    )
    return Run(time.perf_counter() - start)


More = Callable[[bpy.types.Object], None]


def _case(more: More | None = None, aim: float | None = None, *, again: bool = False, **character: object) -> Case:
    return case(Play(Character(more=more, **character), again=again), aim, OF_THE_FLOOR)


CASES = {
    "production-plain": _case(),
    "production-foreign": _case(with_foreign_handler, 3.2),
    "production-nla": _case(in_strip, 3.2),
    "production-muted-nla": _case(with_muted_track, 1.9),
    "production-driver": _case(with_driver, 3.2),
    "production-constraint": _case(with_constraint, 3.2),
    "production-child-of": _case(with_child_of, 3.2),
    "production-rigify": case(Play(Rigify()), 4.5, OF_THE_FLOOR),
    "production-set-up": case(Play(SetUp()), None, OF_THE_FLOOR),
    "production-constraint-loop": _case(with_constraint, again=True),
    "production-rigify-loop": case(Play(Rigify(), again=True), None, OF_THE_FLOOR),
    "production-set": _case(aim=1.2, keyed_limbs=False, others=5000),
    "bake-rigify": Case("s", partial(baked, OURS), partial(baked, BLENDER), aim=0.5),
}
