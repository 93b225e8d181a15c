"""What keeps a chain from being solved: how it comes about, what the panel says, and the button that helps."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import bpy

from tests import rigs


class Limb:
    """A chain of two bones with a target."""

    def __init__(self, lower: bpy.types.PoseBone) -> None:
        """Take the tip; Edit Mode makes new pose bones, so it is looked up by its name."""
        self.ob: Any = lower.id_data
        """The armature."""
        self._tip = lower.name

    @property
    def lower(self) -> bpy.types.PoseBone:
        """Return the tip."""
        bone: bpy.types.PoseBone = self.ob.pose.bones[self._tip]
        return bone

    @property
    def upper(self) -> Any:
        """Return the root."""
        return self.lower.parent

    @property
    def chain(self) -> Any:
        """Return the settings of the chain."""
        return self.lower.ik_addon

    @property
    def target(self) -> bpy.types.Object:
        """Return the target."""
        return self.chain.target


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a chain, and perhaps with its armature."""

    make: Callable[[Limb], object]
    message: str = ""
    """Part of what the panel says; empty where this differs from case to case."""
    label: str = ""
    """The button that helps; empty where there is none."""


def stored(owner: Any) -> Any:
    """Return the stored settings of a bone or object, which can be changed without checks."""
    groups = owner.bl_system_properties_get(do_create=True) if hasattr(owner, "bl_system_properties_get") else owner
    return groups["ik_addon"]


def on(part: str, **values: object) -> Callable[[Limb], None]:
    """Return a fault of wrong values of a part of a limb: "ob", "upper", "lower", "chain" or "target"."""

    def make(limb: Limb) -> None:
        owner = getattr(limb, part)
        for name, value in values.items():
            setattr(owner, name, value)

    return make


def _hide(kind: str) -> Callable[[Limb], None]:
    def make(limb: Limb) -> None:
        collection = rigs.in_collection("Targets", limb.target)
        if kind == "exclude":
            bpy.context.view_layer.layer_collection.children["Targets"].exclude = True
        else:
            setattr(collection, kind, True)

    return make


def _parent(carrier: Callable[[Limb], Any], bone: Callable[[Limb], str]) -> Callable[[Limb], None]:
    return lambda limb: rigs.change(limb.target, parent=carrier(limb), parent_type="BONE", parent_bone=bone(limb))


def _child_of(carrier: Callable[[Limb], Any], bone: Callable[[Limb], str]) -> Callable[[Limb], None]:
    return lambda limb: rigs.constrain(limb.target, "CHILD_OF", target=carrier(limb), subtarget=bone(limb))


def _copy(limb: Limb) -> None:
    rigs.constrain(limb.target, "COPY_LOCATION", target=limb.ob, subtarget=limb.lower.name)


def _own_bone(role: str) -> Callable[[Limb], None]:
    return lambda limb: on("chain", **{role: limb.ob, f"{role}_bone": limb.upper.name})(limb)


def _lose_pole(limb: Limb) -> None:
    limb.chain.pole = rigs.empty("Pole", (0.0, -3.0, 1.0))
    bpy.context.scene.collection.objects.unlink(limb.chain.pole)


def _lose_bone(limb: Limb) -> None:
    other = rigs.limb([(0.5, 0.5, 1.0), (0.5, 0.5, 1.5)], ["hand"], name="Other")
    bpy.context.view_layer.objects.active = limb.ob
    limb.chain.target, limb.chain.target_bone = other, "renamed since"


def _follow_own_hand(limb: Limb) -> None:
    rigs.add_bones(limb.ob, [(0.1, 0.1, 1.5), (0.1, 0.1, 1.7)], ["hand"], parent=limb.lower.name)
    limb.chain.target, limb.chain.target_bone = limb.ob, "hand"


def _constrain(*bones: str) -> Callable[[Limb], None]:
    def make(limb: Limb) -> None:
        for bone, kind in zip(bones, ("COPY_ROTATION", "IK"), strict=False):
            getattr(limb, bone).constraints.new(kind)

    return make


def _unposed(_limb: Limb) -> bpy.types.Object:
    """Return an armature object as importers create it: in no scene yet and without a pose."""
    return bpy.data.objects.new("Unposed", bpy.data.armatures.new("Unposed"))


def _own(limb: Limb) -> Any:
    return limb.ob


def _tip(limb: Limb) -> str:
    return limb.lower.name


def _store(setting: str, value: object) -> Callable[[Limb], object]:
    return lambda limb: stored(limb.lower).update({setting: value})


NAN = math.nan
NOWHERE, INFINITE = (NAN, 0.0, 0.0), (math.inf, 0.0, 0.0)
RESET = "Reset Transform of 'Target'"
PART = "part of this chain"
TOO_FAR = ("'Rig' is too far away, or scaled too much", "Reset Transform of 'Rig'")
FAULTS: Mapping[str, Fault] = {
    "no target": Fault(on("chain", target=None), "No target. Pick an object for the tip to follow", "Make Target"),
    "deleted target": Fault(lambda limb: bpy.data.objects.remove(limb.target), "No target", "Make Target"),
    "unlinked target": Fault(
        lambda limb: bpy.context.scene.collection.objects.unlink(limb.target),
        "'Target' was deleted or is excluded from this view layer",
        "Make New Target",
    ),
    "hidden target": Fault(on("target", hide_viewport=True), "disabled in viewports", "Enable Target in Viewports"),
    "hidden collection": Fault(_hide("hide_viewport"), "disabled in viewports", "Enable Target in Viewports"),
    "excluded collection": Fault(_hide("exclude"), "excluded", "Include 'Targets'"),
    "target on its own chain": Fault(_parent(_own, _tip), f"'Target' is attached to 'lower', {PART}", "Clear Parent"),
    "target constrained to its own chain": Fault(_child_of(_own, _tip), PART, "Mute 'Child Of'"),
    "its own hand as target": Fault(_follow_own_hand, PART, "Clear Parent"),
    "its own bone as target": Fault(_own_bone("target"), PART),
    "its own bone as pole": Fault(_own_bone("pole"), f"'Rig' is attached to 'upper', {PART}"),
    "target that copies its own chain": Fault(_copy, PART),
    "lost pole": Fault(_lose_pole, "was deleted or is excluded", "Clear Pole"),
    "lost target bone": Fault(_lose_bone, "has no bone 'renamed since'", "Make New Target"),
    "lost control bone": Fault(on("chain", target=None, target_bone="gone"), "has no bone 'gone'", "Make New Target"),
    "wrong end bone": Fault(on("chain", end_bone="upper"), "upper", "Clear End Bone"),
    "wrong solver": Fault(
        on("chain", solver="TWO_BONE", chain_length=1),
        "Two-Bone needs exactly two bones with length, and this chain has 1",
        "Use Automatic Solver",
    ),
    "rest position": Fault(
        lambda limb: setattr(limb.ob.data, "pose_position", "REST"), "Rest Position", "Switch to Pose Position"
    ),
    "constraint": Fault(
        _constrain("upper"),
        "The constraint 'Copy Rotation' on bone 'upper' also moves bones of this chain. Mute it",
        "Mute 'Copy Rotation'",
    ),
    "two constraints": Fault(_constrain("upper", "lower"), "also moves bones of this chain", "Mute 2 Constraints"),
    "driver": Fault(lambda limb: limb.upper.driver_add("rotation_quaternion", 1), "river", "Mute Drivers"),
    "target nowhere": Fault(on("target", location=NOWHERE), "The target's position is not a finite number", RESET),
    "infinitely far target": Fault(on("target", location=INFINITE), "not a finite number", RESET),
    "infinitely far armature": Fault(on("ob", location=INFINITE), *TOO_FAR),
    "armature scaled unevenly": Fault(on("ob", scale=(1.0, 1.0, 1e7)), *TOO_FAR),
    "armature nowhere": Fault(on("ob", location=NOWHERE), "The transform of 'Rig' is not a finite number"),
    "bone nowhere": Fault(on("upper", location=NOWHERE), "The transform of bone 'upper' is not a finite number"),
    "armature scaled to zero": Fault(on("ob", scale=(0.0, 0.0, 0.0)), "scaled to zero", "Reset Scale of 'Rig'"),
    "flat armature": Fault(on("ob", scale=(1.0, 0.0, 1.0)), "'Rig' is scaled to zero", "Reset Scale of 'Rig'"),
    "bone of no size": Fault(on("upper", scale=(0.0, 0.0, 0.0)), "no length in this pose", "Reset 'upper'"),
    "stretch that is no number": Fault(on("lower", ik_stretch=NAN), "", "Reset IK of 'lower'"),
    "limit that is no number": Fault(on("lower", use_ik_limit_x=True, ik_max_x=NAN)),
    "limits the wrong way round": Fault(on("lower", use_ik_limit_x=True, ik_min_x=0.0, ik_max_x=-1.0)),
    "stiffness that is no number": Fault(on("lower", ik_stiffness_x=NAN)),
    "rotation that is no number": Fault(on("upper", rotation_quaternion=(NAN,) * 4)),
    "infinite scale": Fault(on("upper", scale=(math.inf, 1.0, 1.0))),
    "target on a bone without a pose": Fault(_parent(_unposed, lambda _: "hand")),
    "target constrained to a bone without a pose": Fault(_child_of(_unposed, lambda _: "hand")),
    **{
        f"{label} that is not allowed": Fault(
            _store(label.lower().replace(" ", "_"), value),
            f"'{label}' has a value that is not allowed. Reset this setting",
            f"Reset {label}",
        )
        for label, value in (("Softness", math.inf), ("Influence", -2.0), ("Chain Length", -3), ("Solver", 77))
    },
    "resting that is no list": Fault(_store("resting", '{"lower a": "far", "": NaN}')),
    "weight that is no number": Fault(_store("weight", NAN)),
}
