"""Characters with the bone names and the hierarchies of common rigs.

A rig is text: bones, each as `NAME PLACE`. On a line `>` leads to a child, `|` to a sibling of the line's first bone;
a line that is indented further has children of the last bone above it. `{s}` in a name stands for the side, and such a
bone is made twice; `~` is a space. A place is one of `PLACES`, optionally with an offset after `+` for small bones
beside a limb.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import bpy
from mathutils import Matrix, Vector

from tests import rigs

PLACES: Mapping[str, tuple[float, float, float]] = {
    "ground": (0.0, 0.0, 0.0),
    "hips": (0.0, 0.0, 0.95),
    "spine1": (0.0, -0.005, 1.05),
    "spine2": (0.0, -0.01, 1.15),
    "spine3": (0.0, 0.0, 1.25),
    "spine4": (0.0, 0.0, 1.32),
    "spine5": (0.0, 0.0, 1.38),
    "neck": (0.0, 0.0, 1.47),
    "neck2": (0.0, -0.01, 1.52),
    "head": (0.0, -0.01, 1.57),
    "crown": (0.0, -0.01, 1.78),
    "collar": (0.03, 0.0, 1.42),
    "shoulder": (0.17, 0.01, 1.42),
    "arm2": (0.295, 0.015, 1.42),
    "elbow": (0.42, 0.02, 1.42),
    "fore2": (0.54, 0.015, 1.42),
    "wrist": (0.66, 0.01, 1.42),
    "knuckle": (0.74, 0.01, 1.41),
    "finger2": (0.78, 0.01, 1.40),
    "finger3": (0.81, 0.01, 1.39),
    "fingertip": (0.83, 0.01, 1.38),
    "thumb": (0.69, -0.03, 1.41),
    "hip": (0.09, 0.0, 0.9),
    "thigh2": (0.09, -0.005, 0.7),
    "knee": (0.09, -0.01, 0.5),
    "shin2": (0.09, -0.005, 0.3),
    "ankle": (0.09, 0.0, 0.1),
    "ball": (0.09, -0.13, 0.02),
    "toe": (0.09, -0.19, 0.02),
}
STRAIGHT = {
    "arm2": (0.295, 0.01, 1.42),
    "elbow": (0.415, 0.01, 1.42),
    "fore2": (0.54, 0.01, 1.42),
    "thigh2": (0.09, 0.0, 0.7),
    "knee": (0.09, 0.0, 0.5),
    "shin2": (0.09, 0.0, 0.3),
}
"""Places where arms and legs are exactly straight."""


@dataclass(frozen=True)
class NamedRig:
    """The bones of a rig, and the chains that Add Chain should find."""

    sides: tuple[str, str]
    """What replaces `{s}` on the left and on the right."""
    bones: str
    chains: Mapping[str, str]
    """By the bone names of a chain, root first: names of other bones that lead to the same chain."""
    places: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Overrides `PLACES`."""

    def named(self, names: str) -> list[list[str]]:
        """Return these names for the left and for the right; once if they have no side."""
        both = [spaced(names.replace("{s}", side).split()) for side in self.sides]
        return both[:1] if "{s}" not in names else both


def spaced(names: Sequence[str]) -> list[str]:
    """Return the names with their spaces restored."""
    return [name.replace("~", " ") for name in names]


@dataclass
class _Line:
    name: str
    place: Vector
    parent: int
    is_helper: bool


def build(rig: NamedRig, *, is_straight: bool = False, turn: Matrix | None = None) -> bpy.types.Object:
    """Build the armature of a rig, facing -Y unless turned; bones point at their first child that is not a helper."""
    places = {**PLACES, **(STRAIGHT if is_straight else {}), **rig.places}
    lines = _lines(rig, {name: Vector(place) for name, place in places.items()})
    ob = rigs.armature("Rig")
    bpy.ops.object.mode_set(mode="EDIT")
    made: list[bpy.types.EditBone] = []
    turn = turn or Matrix.Identity(4)
    for i, line in enumerate(lines):
        bone = ob.data.edit_bones.new(line.name)
        assert bone.name == line.name, "names are unique and not too long"
        after = [other for other in lines if other.parent == i and not other.is_helper]
        above = lines[line.parent].place if line.parent >= 0 else line.place - Vector((0.0, 0.0, 0.1))
        step = after[0].place - line.place if after else 0.5 * (line.place - above)
        if step.length < 0.01:
            step = Vector((0.0, 0.0, 0.03))
        bone.head, bone.tail = turn @ line.place, turn @ (line.place + step)
        bone.parent = made[line.parent] if line.parent >= 0 else None
        made.append(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    return ob


def _lines(rig: NamedRig, places: Mapping[str, Vector]) -> list[_Line]:
    found: list[_Line] = []
    above: list[tuple[int, dict[str, int]]] = []  # indentation, and the bone of each side
    for text in rig.bones.strip("\n").splitlines():
        indent = len(text) - len(text.lstrip())
        above = [entry for entry in above if entry[0] < indent]
        for sibling in text.split("|"):
            parents = above[-1][1] if above else {}
            for bone in sibling.split(">"):
                name, place = spaced(bone.split())
                key, *offsets = place.split("+")
                at = places[key] + Vector([float(v) for v in offsets[0].split(",")] if offsets else (0.0, 0.0, 0.0))
                made: dict[str, int] = {}
                for side, sign in zip(rig.sides if "{s}" in name else ("",), (1.0, -1.0), strict=False):
                    made[side] = len(found)
                    head, parent = Vector((sign * at.x, at.y, at.z)), parents.get(side, parents.get("", -1))
                    found.append(_Line(name.replace("{s}", side), head, parent, bool(offsets)))
                parents = made
        above.append((indent, made))
    return found


def both(rig: NamedRig) -> Sequence[tuple[list[str], list[str]]]:
    """Return each chain on each side, with all bones that lead to it."""
    found = []
    for chain, also in rig.chains.items():
        for bones in rig.named(chain):
            side = rig.sides[rig.named(chain).index(bones)]
            found.append((bones, [*bones, *spaced(also.replace("{s}", side).split())]))
    return found


def limbs(rig: NamedRig, ob: bpy.types.Object) -> list[list[str]]:
    """Return the chains of a rig that are arms and legs, judged by where they begin."""
    starts = [Vector(PLACES[place]) for place in ("hip", "shoulder")]

    def begins(name: str) -> bool:
        head = ob.data.bones[name].head_local
        return any((Vector((abs(head.x), head.y, head.z)) - start).length < 1e-3 for start in starts)

    return [chain for chain, _meant in both(rig) if begins(chain[0])]


MANNY = NamedRig(
    ("l", "r"),
    """
root ground
  pelvis hips
    spine_01 spine1 > spine_02 spine2 > spine_03 spine3 > spine_04 spine4
      spine_04_latissimus_{s} spine4+0.1,0,0 | spine_05 spine5
        neck_01 neck > neck_02 neck2 > head head | clavicle_{s} collar
          clavicle_out_{s} collar+0.05,0,0 | clavicle_scap_{s} collar+0.04,0.03,0 | upperarm_{s} shoulder
            lowerarm_{s} elbow
              hand_{s} wrist
                index_metacarpal_{s} wrist+0.02,0,0 > index_01_{s} knuckle > index_02_{s} finger2
                  index_03_{s} finger3
                thumb_01_{s} thumb | weapon_{s} wrist+0.03,0,-0.02 | wrist_inner_{s} wrist+0,0,-0.02
              lowerarm_twist_02_{s} elbow+0.08,0,0 > lowerarm_twistCor_02_{s} elbow+0.08,0,0.01
              lowerarm_twist_01_{s} elbow+0.16,0,0 > lowerarm_twistCor_01_{s} elbow+0.16,0,0.01
              lowerarm_correctiveRoot_{s} elbow+0.01,0,0
                lowerarm_in_{s} elbow+0.01,-0.03,0 | lowerarm_out_{s} elbow+0.01,0.03,0
                lowerarm_fwd_{s} elbow+0.01,0,0.03 | lowerarm_bck_{s} elbow+0.01,0,-0.03
            upperarm_twist_01_{s} shoulder+0.06,0,0
              upperarm_twistCor_01_{s} shoulder+0.06,0,0.01 | upperarm_tricep_{s} shoulder+0.07,0.03,0
              upperarm_bicep_{s} shoulder+0.07,-0.03,0
            upperarm_twist_02_{s} shoulder+0.12,0,0 > upperarm_twistCor_02_{s} shoulder+0.12,0,0.01
            upperarm_correctiveRoot_{s} shoulder+0.01,0,0
              upperarm_fwd_{s} shoulder+0.01,-0.04,0 | upperarm_bck_{s} shoulder+0.01,0.04,0
    thigh_{s} hip
      calf_{s} knee
        foot_{s} ankle
          ankle_bck_{s} ankle+0,0.03,0.02 | ankle_fwd_{s} ankle+0,-0.03,0.02
          ball_{s} ball > bigtoe_01_{s} ball+0.02,-0.02,0
        calf_twist_02_{s} knee+0,0,-0.13 > calf_twistCor_02_{s} knee+0,0.01,-0.13 | calf_twist_01_{s} knee+0,0,-0.26
        calf_correctiveRoot_{s} knee+0,0,-0.01
          calf_kneeBack_{s} knee+0,0.05,-0.01 | calf_knee_{s} knee+0,-0.05,-0.01
      thigh_twist_01_{s} hip+0,0,-0.1 > thigh_twistCor_01_{s} hip+0,0.01,-0.1
      thigh_twist_02_{s} hip+0,0,-0.25 > thigh_twistCor_02_{s} hip+0,0.01,-0.25
      thigh_correctiveRoot_{s} hip+0,0,-0.01
        thigh_fwd_{s} hip+0,-0.05,-0.01 | thigh_bck_{s} hip+0,0.05,-0.01 | thigh_out_{s} hip+0.05,0,-0.01
        thigh_in_{s} hip+-0.05,0,-0.01
  ik_foot_root ground > ik_foot_{s} ankle | ik_hand_root ground > ik_hand_gun wrist > ik_hand_{s} wrist
""",
    {
        "upperarm_{s} lowerarm_{s}": "clavicle_{s} hand_{s} index_metacarpal_{s} upperarm_twist_01_{s} "
        "lowerarm_twistCor_01_{s} upperarm_correctiveRoot_{s} upperarm_bck_{s} lowerarm_in_{s} ik_hand_{s} "
        "upperarm_bicep_{s}",
        "thigh_{s} calf_{s}": "foot_{s} ball_{s} thigh_twist_01_{s} thigh_twistCor_02_{s} thigh_bck_{s} calf_knee_{s} "
        "calf_correctiveRoot_{s} ik_foot_{s}",
        "spine_01 spine_02 spine_03 spine_04 spine_05": "pelvis",
        "neck_01 neck_02 head": "",
        "index_01_{s} index_02_{s} index_03_{s}": "",
    },
)

CHARACTER_CREATOR = NamedRig(
    ("L", "R"),
    """
RL_BoneRoot ground > CC_Base_Hip hips
  CC_Base_Pelvis hips > CC_Base_{s}_Thigh hip
    CC_Base_{s}_Calf knee
      CC_Base_{s}_Foot ankle
        CC_Base_{s}_ToeBaseShareBone ball+0,0.01,0
        CC_Base_{s}_ToeBase ball > CC_Base_{s}_BigToe1 ball+-0.02,-0.02,0
      CC_Base_{s}_KneeShareBone knee+0,0,0.01
      CC_Base_{s}_CalfTwist01 knee+0,0,-0.1 > CC_Base_{s}_CalfTwist02 shin2
    CC_Base_{s}_ThighTwist01 hip+0,0,-0.02 > CC_Base_{s}_ThighTwist02 thigh2
  CC_Base_Waist spine1 > CC_Base_Spine01 spine2 > CC_Base_Spine02 spine4
    CC_Base_NeckTwist01 neck > CC_Base_NeckTwist02 neck2 > CC_Base_Head head > CC_Base_FacialBone head+0,-0.05,0.02
      CC_Base_JawRoot head+0,-0.05,0.01
    CC_Base_{s}_Clavicle collar > CC_Base_{s}_Upperarm shoulder
      CC_Base_{s}_Forearm elbow
        CC_Base_{s}_ForearmTwist01 elbow+0.01,0,0 > CC_Base_{s}_ForearmTwist02 fore2
        CC_Base_{s}_ElbowShareBone elbow+0,0,0.01 | CC_Base_{s}_Hand wrist
          CC_Base_{s}_Index1 knuckle > CC_Base_{s}_Index2 finger2 > CC_Base_{s}_Index3 finger3
          CC_Base_{s}_Thumb1 thumb
      CC_Base_{s}_UpperarmTwist01 shoulder+0.01,0,0 > CC_Base_{s}_UpperarmTwist02 arm2
    CC_Base_{s}_RibsTwist spine4+0.08,-0.05,0 > CC_Base_{s}_Breast spine4+0.08,-0.1,0
""",
    {
        "CC_Base_{s}_Thigh CC_Base_{s}_Calf": "CC_Base_{s}_Foot CC_Base_{s}_ToeBase CC_Base_{s}_CalfTwist02 "
        "CC_Base_{s}_ThighTwist01 CC_Base_{s}_KneeShareBone CC_Base_{s}_ToeBaseShareBone",
        "CC_Base_{s}_Upperarm CC_Base_{s}_Forearm": "CC_Base_{s}_Hand CC_Base_{s}_Clavicle "
        "CC_Base_{s}_ElbowShareBone CC_Base_{s}_UpperarmTwist02 CC_Base_{s}_ForearmTwist01",
        "CC_Base_Waist CC_Base_Spine01 CC_Base_Spine02": "CC_Base_Hip CC_Base_Pelvis",
        "CC_Base_{s}_Index1 CC_Base_{s}_Index2 CC_Base_{s}_Index3": "",
        "CC_Base_NeckTwist01 CC_Base_NeckTwist02 CC_Base_Head": "",
    },
)

AUTO_RIG_PRO = NamedRig(
    ("l", "r"),
    """
root.x hips
  spine_01.x spine1 > spine_02.x spine2 > spine_03.x spine4
    neck.x neck > head.x head | shoulder.{s} collar > arm_stretch.{s} shoulder
      forearm_stretch.{s} elbow
        hand.{s} wrist > c_index1.{s} knuckle > c_index2.{s} finger2 > c_index3.{s} finger3
        forearm_twist.{s} fore2
      arm_twist.{s} shoulder+0.02,0,0
  thigh_stretch.{s} hip
    leg_stretch.{s} knee
      foot.{s} ankle > toes_01.{s} ball | leg_twist.{s} shin2
    thigh_twist.{s} hip+0,0,-0.05
""",
    {
        "thigh_stretch.{s} leg_stretch.{s}": "foot.{s} toes_01.{s} thigh_twist.{s} leg_twist.{s}",
        "arm_stretch.{s} forearm_stretch.{s}": "shoulder.{s} hand.{s} arm_twist.{s} forearm_twist.{s}",
        "spine_01.x spine_02.x spine_03.x": "root.x",
        "neck.x head.x": "",
    },
)

MGEAR = NamedRig(
    ("L0", "R0"),
    """
global_C0_0_jnt ground > spine_C0_pelvis_jnt hips
  leg_{s}_0_jnt hip > leg_{s}_1_jnt thigh2 > leg_{s}_2_jnt knee > leg_{s}_3_jnt shin2 > leg_{s}_end_jnt ankle
    foot_{s}_0_jnt ball > foot_{s}_1_jnt toe
  spine_C0_0_jnt spine1 > spine_C0_1_jnt spine2 > spine_C0_2_jnt spine4
    neck_C0_0_jnt neck > neck_C0_head_jnt head
    shoulder_{s}_shoulder_jnt collar > arm_{s}_0_jnt shoulder > arm_{s}_1_jnt arm2 > arm_{s}_2_jnt elbow
      arm_{s}_3_jnt fore2 > arm_{s}_end_jnt wrist > finger_{s}_0_jnt knuckle > finger_{s}_1_jnt finger2
        finger_{s}_2_jnt finger3
""",
    {
        "leg_{s}_0_jnt leg_{s}_1_jnt leg_{s}_2_jnt leg_{s}_3_jnt": "leg_{s}_end_jnt foot_{s}_0_jnt foot_{s}_1_jnt",
        "arm_{s}_0_jnt arm_{s}_1_jnt arm_{s}_2_jnt arm_{s}_3_jnt": "arm_{s}_end_jnt shoulder_{s}_shoulder_jnt",
        "spine_C0_0_jnt spine_C0_1_jnt spine_C0_2_jnt": "spine_C0_pelvis_jnt",
        "finger_{s}_0_jnt finger_{s}_1_jnt finger_{s}_2_jnt": "",
    },
)

OPTITRACK = NamedRig(
    ("L", "R"),
    """
Hip hips
  Ab spine1 > Chest spine3
    Neck neck > Head head
    {s}Shoulder collar > {s}UArm shoulder > {s}FArm elbow > {s}Hand wrist > {s}Index1 knuckle > {s}Index2 finger2
      {s}Index3 finger3
  {s}Thigh hip > {s}Shin knee > {s}Foot ankle > {s}Toe ball
""",
    {
        "{s}Thigh {s}Shin": "{s}Foot {s}Toe",
        "{s}UArm {s}FArm": "{s}Shoulder {s}Hand",
        "Ab Chest": "Hip",
        "Neck Head": "",
    },
)

MAKEHUMAN = NamedRig(
    ("L", "R"),
    """
root hips
  pelvis.{s} hips+0.04,0,-0.01 > upperleg01.{s} hip > upperleg02.{s} thigh2 > lowerleg01.{s} knee
    lowerleg02.{s} shin2 > foot.{s} ankle
      toe1-1.{s} ball > toe1-2.{s} toe | toe2-1.{s} ball+0.03,0,0
  spine05 spine1 > spine04 spine2 > spine03 spine3 > spine02 spine4
    breast.{s} spine4+0.08,-0.1,0 | spine01 spine5
      clavicle.{s} collar > shoulder01.{s} collar+0.07,0,0 > upperarm01.{s} shoulder > upperarm02.{s} arm2
        lowerarm01.{s} elbow > lowerarm02.{s} fore2 > wrist.{s} wrist
          metacarpal1.{s} wrist+0.02,0,0 > finger2-1.{s} knuckle > finger2-2.{s} finger2 > finger2-3.{s} finger3
          finger1-1.{s} thumb
      neck01 neck > neck02 neck2 > neck03 neck2+0,0,0.02 > head head
""",
    {
        "upperleg01.{s} upperleg02.{s} lowerleg01.{s} lowerleg02.{s}": "foot.{s} toe1-1.{s} toe1-2.{s} pelvis.{s}",
        "upperarm01.{s} upperarm02.{s} lowerarm01.{s} lowerarm02.{s}": "clavicle.{s} shoulder01.{s} wrist.{s} "
        "metacarpal1.{s}",
        "spine05 spine04 spine03 spine02 spine01": "root",
        "neck01 neck02 neck03 head": "",
        "finger2-1.{s} finger2-2.{s} finger2-3.{s}": "",
    },
)

DAZ = NamedRig(
    ("l", "r"),
    """
hip hips
  pelvis hips > {s}ThighBend hip > {s}ThighTwist thigh2 > {s}Shin knee > {s}Foot ankle
    {s}Metatarsals ankle+0,-0.05,-0.04 > {s}Toe ball > {s}BigToe ball+-0.02,-0.02,0 | {s}Heel ankle+0,0.04,-0.06
  abdomenLower spine1 > abdomenUpper spine2 > chestLower spine3
    {s}Pectoral spine3+0.08,-0.1,0 | chestUpper spine4
      {s}Collar collar > {s}ShldrBend shoulder > {s}ShldrTwist arm2 > {s}ForearmBend elbow > {s}ForearmTwist fore2
        {s}Hand wrist
          {s}Thumb1 thumb | {s}Carpal1 wrist+0.02,0,0 > {s}Index1 knuckle > {s}Index2 finger2 > {s}Index3 finger3
      neckLower neck > neckUpper neck2 > head head > upperFaceRig head+0,-0.05,0.02
""",
    {
        "{s}ThighBend {s}ThighTwist {s}Shin": "{s}Foot {s}Toe {s}Heel {s}Metatarsals",
        "{s}ShldrBend {s}ShldrTwist {s}ForearmBend {s}ForearmTwist": "{s}Collar {s}Hand {s}Carpal1",
        "abdomenLower abdomenUpper chestLower chestUpper": "hip pelvis",
        "neckLower neckUpper head": "",
    },
)

GENESIS_9 = NamedRig(
    ("l", "r"),
    """
hip hips
  pelvis hips > {s}_thigh hip
    {s}_thightwist1 hip+0,0,-0.1 | {s}_thightwist2 thigh2+0,0,0 | {s}_shin knee > {s}_foot ankle
      {s}_metatarsal ankle+0,-0.05,-0.04 | {s}_toes ball > {s}_bigtoe1 ball+-0.02,-0.02,0
  spine1 spine1 > spine2 spine2 > spine3 spine3 > spine4 spine4
    {s}_shoulder collar > {s}_upperarm shoulder
      {s}_upperarmtwist1 shoulder+0.05,0,0 | {s}_upperarmtwist2 arm2+0,0,0 | {s}_forearm elbow
        {s}_forearmtwist1 elbow+0.05,0,0 | {s}_forearmtwist2 fore2+0,0,0
        {s}_hand wrist > {s}_indexmetacarpal wrist+0.02,0,0 > {s}_index1 knuckle > {s}_index2 finger2
          {s}_index3 finger3
    neck1 neck > neck2 neck2 > head head
""",
    {
        "{s}_thigh {s}_shin": "{s}_foot {s}_toes {s}_bigtoe1 {s}_metatarsal {s}_thightwist2",
        "{s}_upperarm {s}_forearm": "{s}_shoulder {s}_hand {s}_indexmetacarpal {s}_upperarmtwist1 {s}_forearmtwist2",
        "spine1 spine2 spine3 spine4": "hip",
        "neck1 neck2 head": "",
    },
)

MIXAMO = NamedRig(
    ("Left", "Right"),
    """
mixamorig:Hips hips
  mixamorig:Spine spine1 > mixamorig:Spine1 spine2 > mixamorig:Spine2 spine4
    mixamorig:Neck neck > mixamorig:Head head > mixamorig:HeadTop_End crown
    mixamorig:{s}Shoulder collar > mixamorig:{s}Arm shoulder > mixamorig:{s}ForeArm elbow > mixamorig:{s}Hand wrist
      mixamorig:{s}HandIndex1 knuckle > mixamorig:{s}HandIndex2 finger2 > mixamorig:{s}HandIndex3 finger3
        mixamorig:{s}HandIndex4 fingertip
  mixamorig:{s}UpLeg hip > mixamorig:{s}Leg knee > mixamorig:{s}Foot ankle > mixamorig:{s}ToeBase ball
    mixamorig:{s}Toe_End toe
""",
    {
        "mixamorig:{s}UpLeg mixamorig:{s}Leg": "mixamorig:{s}Foot mixamorig:{s}ToeBase mixamorig:{s}Toe_End",
        "mixamorig:{s}Arm mixamorig:{s}ForeArm": "mixamorig:{s}Shoulder mixamorig:{s}Hand",
        "mixamorig:Spine mixamorig:Spine1 mixamorig:Spine2": "mixamorig:Hips",
        "mixamorig:Neck mixamorig:Head": "",
        "mixamorig:{s}HandIndex1 mixamorig:{s}HandIndex2 mixamorig:{s}HandIndex3": "mixamorig:{s}HandIndex4",
    },
)

VRM = NamedRig(
    ("L", "R"),
    """
Root ground > J_Bip_C_Hips hips
  J_Bip_C_Spine spine1 > J_Bip_C_Chest spine2 > J_Bip_C_UpperChest spine4
    J_Bip_C_Neck neck > J_Bip_C_Head head | J_Sec_{s}_Bust1 spine4+0.08,-0.1,0
    J_Bip_{s}_Shoulder collar > J_Bip_{s}_UpperArm shoulder > J_Bip_{s}_LowerArm elbow > J_Bip_{s}_Hand wrist
      J_Bip_{s}_Index1 knuckle > J_Bip_{s}_Index2 finger2 > J_Bip_{s}_Index3 finger3
  J_Bip_{s}_UpperLeg hip
    J_Bip_{s}_LowerLeg knee > J_Bip_{s}_Foot ankle > J_Bip_{s}_ToeBase ball
    J_Sec_{s}_CoatSkirtFront_01 hip+0,-0.1,-0.05 > J_Sec_{s}_CoatSkirtFront_02 hip+0,-0.12,-0.2
""",
    {
        "J_Bip_{s}_UpperLeg J_Bip_{s}_LowerLeg": "J_Bip_{s}_Foot J_Bip_{s}_ToeBase",
        "J_Bip_{s}_UpperArm J_Bip_{s}_LowerArm": "J_Bip_{s}_Shoulder J_Bip_{s}_Hand",
        "J_Bip_C_Spine J_Bip_C_Chest J_Bip_C_UpperChest": "J_Bip_C_Hips",
        "J_Bip_C_Neck J_Bip_C_Head": "",
    },
)

ADVANCED_SKELETON = NamedRig(
    ("L", "R"),
    """
Root_M hips
  Hip_{s} hip > HipPart1_{s} hip+0,0,-0.13 > HipPart2_{s} hip+0,0,-0.26 > Knee_{s} knee > Ankle_{s} ankle
    Toes_{s} ball > ToesEnd_{s} toe
  Spine1_M spine1 > Spine2_M spine2 > Chest_M spine4
    Scapula_{s} collar > Shoulder_{s} shoulder > ShoulderPart1_{s} shoulder+0.08,0,0
      ShoulderPart2_{s} shoulder+0.16,0,0 > Elbow_{s} elbow > ElbowPart1_{s} elbow+0.08,0,0
        ElbowPart2_{s} elbow+0.16,0,0 > Wrist_{s} wrist
    Neck_M neck > Head_M head
""",
    {
        "Hip_{s} HipPart1_{s} HipPart2_{s} Knee_{s}": "Ankle_{s} Toes_{s}",
        "Shoulder_{s} ShoulderPart1_{s} ShoulderPart2_{s} Elbow_{s} ElbowPart1_{s} ElbowPart2_{s}": "Wrist_{s}",
        "Spine1_M Spine2_M Chest_M": "Root_M",
    },
)

SECOND_LIFE = NamedRig(
    ("Left", "Right"),
    """
mPelvis hips
  mTorso spine1 > mChest spine3
    mNeck neck > mHead head | mCollar{s} collar > mShoulder{s} shoulder > mElbow{s} elbow > mWrist{s} wrist
  mHip{s} hip > mKnee{s} knee > mAnkle{s} ankle > mFoot{s} ball > mToe{s} toe
""",
    {
        "mHip{s} mKnee{s}": "mAnkle{s} mFoot{s} mToe{s}",
        "mShoulder{s} mElbow{s}": "mCollar{s} mWrist{s}",
        "mTorso mChest": "mPelvis",
    },
)

MMD = NamedRig(
    ("左", "右"),
    """
センター hips
  上半身 spine1 > 上半身2 spine3
    首 neck > 頭 head
    {s}肩 collar > {s}腕 shoulder > {s}腕捩 arm2 > {s}ひじ elbow > {s}手捩 fore2 > {s}手首 wrist > {s}人指１ knuckle
  下半身 hips > {s}足 hip > {s}ひざ knee > {s}足首 ankle > {s}つま先 ball | {s}足ＩＫ ankle
""",
    {
        "{s}足 {s}ひざ": "{s}足首 {s}つま先 {s}足ＩＫ",
        "{s}腕 {s}腕捩 {s}ひじ {s}手捩": "{s}肩 {s}手首",
        "上半身 上半身2": "",
    },
)

SMPL = NamedRig(
    ("L", "R"),
    """
Pelvis hips
  {s}_Hip hip > {s}_Knee knee > {s}_Ankle ankle > {s}_Foot ball | Spine1 spine1 > Spine2 spine2 > Spine3 spine4
    Neck neck > Head head
    {s}_Collar collar > {s}_Shoulder shoulder > {s}_Elbow elbow > {s}_Wrist wrist > {s}_Hand knuckle
""",
    {
        "{s}_Hip {s}_Knee": "{s}_Ankle {s}_Foot",
        "{s}_Shoulder {s}_Elbow": "{s}_Collar {s}_Wrist {s}_Hand",
        "Spine1 Spine2 Spine3": "Pelvis",
    },
)

BIRD = NamedRig(
    ("L", "R"),
    """
hips hips
  chest spine3
    shoulder.{s} collar > humerus.{s} shoulder
      ulna.{s} elbow
        hand.{s} wrist
          primary_01.{s} wrist+0.1,0.2,0 | primary_02.{s} wrist+0.05,0.25,0
        secondary_01.{s} elbow+0.1,0.3,0
      tertial_01.{s} shoulder+0.1,0.3,0
    neck.001 neck > neck.002 neck2 > head head
  thigh.{s} hip > shin.{s} knee > tarsus.{s} ankle > toe.{s} ball
""",
    {
        "humerus.{s} ulna.{s}": "shoulder.{s} hand.{s}",
        "thigh.{s} shin.{s}": "tarsus.{s} toe.{s}",
        "neck.001 neck.002 head": "",
        "chest": "",
    },
)

RIGS: Mapping[str, NamedRig] = {
    "Manny": MANNY,
    "Character Creator": CHARACTER_CREATOR,
    "Auto-Rig Pro": AUTO_RIG_PRO,
    "mGear": MGEAR,
    "OptiTrack": OPTITRACK,
    "MakeHuman": MAKEHUMAN,
    "Daz": DAZ,
    "Genesis 9": GENESIS_9,
    "Mixamo": MIXAMO,
    "VRM": VRM,
    "Advanced Skeleton": ADVANCED_SKELETON,
    "Second Life": SECOND_LIFE,
    "MMD": MMD,
    "SMPL": SMPL,
    "bird": BIRD,
}
