"""More characters with the bone names and the hierarchies of games, engines and motion capture.

They are built like those in `rigs_named`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.rigs_named import MIXAMO, NamedRig


def mixamo(prefix: str) -> NamedRig:
    """Return Mixamo's skeleton with another prefix: some files number it, Ready Player Me omits it."""
    chains = {
        chain.replace("mixamorig:", prefix): also.replace("mixamorig:", prefix) for chain, also in MIXAMO.chains.items()
    }
    return replace(MIXAMO, bones=MIXAMO.bones.replace("mixamorig:", prefix), chains=chains)


VALVE = NamedRig(
    ("L", "R"),
    """
ValveBiped.Bip01_Pelvis hips
  ValveBiped.Bip01_{s}_Thigh hip > ValveBiped.Bip01_{s}_Calf knee > ValveBiped.Bip01_{s}_Foot ankle
    ValveBiped.Bip01_{s}_Toe0 ball
  ValveBiped.Bip01_Spine spine1 > ValveBiped.Bip01_Spine1 spine2 > ValveBiped.Bip01_Spine2 spine3
    ValveBiped.Bip01_Spine4 spine5
      ValveBiped.Bip01_Neck1 neck > ValveBiped.Bip01_Head1 head > ValveBiped.forward head+0,-0.1,0
      ValveBiped.Bip01_{s}_Clavicle collar
        ValveBiped.Bip01_{s}_UpperArm shoulder
          ValveBiped.Bip01_{s}_Forearm elbow
            ValveBiped.Bip01_{s}_Hand wrist
              ValveBiped.Anim_Attachment_{s}H wrist+0.03,0,-0.02
              ValveBiped.Bip01_{s}_Finger1 knuckle > ValveBiped.Bip01_{s}_Finger11 finger2
                ValveBiped.Bip01_{s}_Finger12 finger3
              ValveBiped.Bip01_{s}_Finger0 thumb
            ValveBiped.Bip01_{s}_Ulna fore2+0,0,0 | ValveBiped.Bip01_{s}_Wrist wrist+-0.01,0,0
          ValveBiped.Bip01_{s}_Elbow elbow+-0.01,0,0 | ValveBiped.Bip01_{s}_Bicep arm2+0,0,0
        ValveBiped.Bip01_{s}_Shoulder shoulder+-0.02,0,0
""",
    {
        "ValveBiped.Bip01_{s}_Thigh ValveBiped.Bip01_{s}_Calf": "ValveBiped.Bip01_{s}_Foot ValveBiped.Bip01_{s}_Toe0",
        "ValveBiped.Bip01_{s}_UpperArm ValveBiped.Bip01_{s}_Forearm": "ValveBiped.Bip01_{s}_Clavicle "
        "ValveBiped.Bip01_{s}_Hand ValveBiped.Bip01_{s}_Elbow",
        "ValveBiped.Bip01_Spine ValveBiped.Bip01_Spine1 ValveBiped.Bip01_Spine2 ValveBiped.Bip01_Spine4": ""
        "ValveBiped.Bip01_Pelvis",
        "ValveBiped.Bip01_Neck1 ValveBiped.Bip01_Head1": "",
    },
)

BIPED = NamedRig(
    ("L", "R"),
    """
Bip001 hips > Bip001~Pelvis hips > Bip001~Spine spine1
  Bip001~Spine1 spine3 > Bip001~Spine2 spine5 > Bip001~Neck neck
    Bip001~Head head > Bip001~HeadNub crown
    Bip001~{s}~Clavicle collar > Bip001~{s}~UpperArm shoulder > Bip001~{s}~Forearm elbow
      Bip001~{s}~ForeTwist elbow+0.02,0,0 > Bip001~{s}~ForeTwist1 fore2
      Bip001~{s}~Hand wrist > Bip001~{s}~Finger1 knuckle > Bip001~{s}~Finger11 finger2
        Bip001~{s}~Finger1Nub fingertip
  Bip001~{s}~Thigh hip > Bip001~{s}~Calf knee > Bip001~{s}~Foot ankle > Bip001~{s}~Toe0 ball
    Bip001~{s}~Toe0Nub toe
""",
    {
        "Bip001~{s}~Thigh Bip001~{s}~Calf": "Bip001~{s}~Foot Bip001~{s}~Toe0",
        "Bip001~{s}~UpperArm Bip001~{s}~Forearm": "Bip001~{s}~Clavicle Bip001~{s}~Hand Bip001~{s}~ForeTwist1",
        "Bip001~Spine1 Bip001~Spine2 Bip001~Neck": "",
    },
)

HUMAN_IK = NamedRig(
    ("Left", "Right"),
    """
Character1_Reference ground > Character1_Hips hips
  Character1_{s}UpLeg hip
    Character1_{s}UpLegRoll thigh2+0,0,0 | Character1_{s}Leg knee
      Character1_{s}LegRoll shin2+0,0,0 | Character1_{s}Foot ankle > Character1_{s}ToeBase ball
  Character1_Spine spine1 > Character1_Spine1 spine2 > Character1_Spine2 spine4
    Character1_{s}Shoulder collar > Character1_{s}Arm shoulder
      Character1_{s}ArmRoll arm2+0,0,0 | Character1_{s}ForeArm elbow
        Character1_{s}ForeArmRoll fore2+0,0,0
        Character1_{s}Hand wrist > Character1_{s}HandIndex1 knuckle > Character1_{s}HandIndex2 finger2
          Character1_{s}HandIndex3 finger3
    Character1_Neck neck > Character1_Head head
""",
    {
        "Character1_{s}UpLeg Character1_{s}Leg": "Character1_{s}Foot Character1_{s}ToeBase Character1_{s}UpLegRoll",
        "Character1_{s}Arm Character1_{s}ForeArm": "Character1_{s}Shoulder Character1_{s}Hand Character1_{s}ArmRoll",
        "Character1_Spine Character1_Spine1 Character1_Spine2": "Character1_Hips",
        "Character1_Neck Character1_Head": "",
    },
)

MVN = NamedRig(
    ("Left", "Right"),
    """
Hips hips
  Chest spine1 > Chest2 spine2 > Chest3 spine3 > Chest4 spine4
    Neck neck > Head head | {s}Collar collar > {s}Shoulder shoulder > {s}Elbow elbow > {s}Wrist wrist
  {s}Hip hip > {s}Knee knee > {s}Ankle ankle > {s}Toe ball
""",
    {
        "{s}Hip {s}Knee": "{s}Ankle {s}Toe",
        "{s}Shoulder {s}Elbow": "{s}Collar {s}Wrist",
        "Chest Chest2 Chest3 Chest4": "Hips",
        "Neck Head": "",
    },
)

NEURON = NamedRig(
    ("Left", "Right"),
    """
Robot_Hips hips
  Robot_{s}UpLeg hip > Robot_{s}Leg knee > Robot_{s}Foot ankle
  Robot_Spine spine1 > Robot_Spine1 spine2 > Robot_Spine2 spine3 > Robot_Spine3 spine4
    Robot_Neck neck > Robot_Head head
    Robot_{s}Shoulder collar > Robot_{s}Arm shoulder > Robot_{s}ForeArm elbow > Robot_{s}Hand wrist
      Robot_{s}HandThumb1 thumb
      Robot_{s}InHandIndex wrist+0.02,0,0 > Robot_{s}HandIndex1 knuckle > Robot_{s}HandIndex2 finger2
        Robot_{s}HandIndex3 finger3
""",
    {
        "Robot_{s}UpLeg Robot_{s}Leg": "Robot_{s}Foot",
        "Robot_{s}Arm Robot_{s}ForeArm": "Robot_{s}Shoulder Robot_{s}Hand",
        "Robot_Spine Robot_Spine1 Robot_Spine2 Robot_Spine3": "Robot_Hips",
        "Robot_Neck Robot_Head": "",
        "Robot_{s}HandIndex1 Robot_{s}HandIndex2 Robot_{s}HandIndex3": "",
    },
)

KINECT = NamedRig(
    ("LEFT", "RIGHT"),
    """
PELVIS hips
  SPINE_NAVEL spine1 > SPINE_CHEST spine4
    NECK neck > HEAD head > NOSE head+0,-0.1,0.05
    CLAVICLE_{s} collar > SHOULDER_{s} shoulder > ELBOW_{s} elbow > WRIST_{s} wrist
      HAND_{s} knuckle > HANDTIP_{s} fingertip | THUMB_{s} thumb
  HIP_{s} hip > KNEE_{s} knee > ANKLE_{s} ankle > FOOT_{s} ball
""",
    {
        "HIP_{s} KNEE_{s}": "ANKLE_{s} FOOT_{s}",
        "SHOULDER_{s} ELBOW_{s}": "CLAVICLE_{s} WRIST_{s} HAND_{s}",
        "SPINE_NAVEL SPINE_CHEST": "PELVIS",
        "NECK HEAD": "",
    },
)

ROBLOX = NamedRig(
    ("Left", "Right"),
    """
HumanoidRootNode hips > LowerTorso hips
  UpperTorso spine2
    Head neck | {s}UpperArm shoulder > {s}LowerArm elbow > {s}Hand wrist
  {s}UpperLeg hip > {s}LowerLeg knee > {s}Foot ankle
""",
    {"{s}UpperLeg {s}LowerLeg": "{s}Foot", "{s}UpperArm {s}LowerArm": "{s}Hand"},
)

BENTO = NamedRig(
    ("Left", "Right"),
    """
mPelvis hips
  mSpine1 spine1 > mSpine2 hips+0,0,0 > mTorso spine2 > mSpine3 spine3 > mSpine4 spine2+0,0,0 > mChest spine4
    mNeck neck > mHead head > mSkull crown+0,0,0
    mCollar{s} collar > mShoulder{s} shoulder > mElbow{s} elbow > mWrist{s} wrist > mHandIndex1{s} knuckle
      mHandIndex2{s} finger2 > mHandIndex3{s} finger3
    mWingsRoot spine4+0,0.05,0 > mWing1{s} spine4+0.1,0.1,0 > mWing2{s} spine4+0.3,0.2,0.1
      mWing3{s} spine4+0.6,0.2,0.1 > mWing4{s} spine4+0.9,0.2,0.1
  mHip{s} hip > mKnee{s} knee > mAnkle{s} ankle > mFoot{s} ball > mToe{s} toe | mGroin hips+0,-0.1,-0.05
""",
    {
        "mHip{s} mKnee{s}": "mAnkle{s} mFoot{s} mToe{s}",
        "mShoulder{s} mElbow{s}": "mCollar{s} mWrist{s}",
        "mHandIndex1{s} mHandIndex2{s} mHandIndex3{s}": "",
    },
)

CLOUDRIG = NamedRig(
    ("L", "R"),
    """
Spine hips
  RibCage spine2 > Chest spine4
    Neck neck > Head head
    Shoulder.{s} collar > UpperArm.{s} shoulder > Forearm.{s} elbow > Wrist.{s} wrist > Index1.{s} knuckle
      Index2.{s} finger2 > Index3.{s} finger3
  Thigh.{s} hip > Knee.{s} knee > Foot.{s} ankle > Toes.{s} ball
""",
    {
        "Thigh.{s} Knee.{s}": "Foot.{s} Toes.{s}",
        "UpperArm.{s} Forearm.{s}": "Shoulder.{s} Wrist.{s}",
        "Neck Head": "",
        "Index1.{s} Index2.{s} Index3.{s}": "",
    },
)

SOURCE_2 = NamedRig(
    ("L", "R"),
    """
root_motion ground > pelvis hips
  spine_0 spine1 > spine_1 spine2 > spine_2 spine3 > spine_3 spine4
    neck_0 neck > head_0 head | clavicle_{s} collar > arm_upper_{s} shoulder
      arm_upper_{s}_TWIST arm2+0,0,0 | arm_lower_{s} elbow
        arm_lower_{s}_TWIST fore2+0,0,0
        hand_{s} wrist > finger_index_0_{s} knuckle > finger_index_1_{s} finger2 > finger_index_2_{s} finger3
  leg_upper_{s} hip
    leg_upper_{s}_TWIST thigh2+0,0,0 | leg_lower_{s} knee > ankle_{s} ankle > ball_{s} ball
""",
    {
        "leg_upper_{s} leg_lower_{s}": "ankle_{s} ball_{s} leg_upper_{s}_TWIST",
        "arm_upper_{s} arm_lower_{s}": "clavicle_{s} hand_{s} arm_lower_{s}_TWIST",
        "spine_0 spine_1 spine_2 spine_3": "pelvis",
        "neck_0 head_0": "",
    },
)

SYNTY = NamedRig(
    ("L", "R"),
    """
Root ground > Hips hips
  Spine_01 spine1 > Spine_02 spine2 > Spine_03 spine4
    Neck neck > Head head > Eyebrows head+0,-0.1,0.1
    Clavicle_{s} collar > Shoulder_{s} shoulder > Elbow_{s} elbow > Hand_{s} wrist
      IndexFinger_01_{s} knuckle > IndexFinger_02_{s} finger2 | Thumb_01_{s} thumb
  UpperLeg_{s} hip > LowerLeg_{s} knee > Ankle_{s} ankle > Ball_{s} ball > Toes_{s} toe
""",
    {
        "UpperLeg_{s} LowerLeg_{s}": "Ankle_{s} Ball_{s} Toes_{s}",
        "Shoulder_{s} Elbow_{s}": "Clavicle_{s} Hand_{s}",
        "Spine_01 Spine_02 Spine_03": "Hips",
        "Neck Head": "",
    },
)

ROCKSTAR = NamedRig(
    ("L", "R"),
    """
SKEL_ROOT hips
  SKEL_Pelvis hips > SKEL_{s}_Thigh hip
    SKEL_{s}_Calf knee
      SKEL_{s}_Foot ankle > SKEL_{s}_Toe0 ball | MH_{s}_Knee knee+0,-0.04,0
    RB_{s}_ThighRoll thigh2+0,0,0
  SKEL_Spine_Root hips > SKEL_Spine0 spine1 > SKEL_Spine1 spine2 > SKEL_Spine2 spine3 > SKEL_Spine3 spine4
    SKEL_{s}_Clavicle collar > SKEL_{s}_UpperArm shoulder
      SKEL_{s}_Forearm elbow
        SKEL_{s}_Hand wrist > SKEL_{s}_Finger10 knuckle > SKEL_{s}_Finger11 finger2 | RB_{s}_ForeArmRoll fore2+0,0,0
      RB_{s}_ArmRoll arm2+0,0,0 | MH_{s}_Elbow elbow+0,0.04,0
    SKEL_Neck_1 neck > SKEL_Head head > FB_{s}_Brow head+0,-0.1,0.1
""",
    {
        "SKEL_{s}_Thigh SKEL_{s}_Calf": "SKEL_{s}_Foot SKEL_{s}_Toe0 RB_{s}_ThighRoll",
        "SKEL_{s}_UpperArm SKEL_{s}_Forearm": "SKEL_{s}_Clavicle SKEL_{s}_Hand MH_{s}_Elbow RB_{s}_ArmRoll",
        "SKEL_Neck_1 SKEL_Head": "",
    },
)

SKYRIM = NamedRig(
    ("L", "R"),
    """
NPC~Root~[Root] ground > NPC~COM~[COM~] hips
  NPC~Pelvis~[Pelv] hips > NPC~{s}~Thigh~[{s}Thg] hip
    NPC~{s}~Calf~[{s}Clf] knee > NPC~{s}~Foot~[{s}ft~] ankle > NPC~{s}~Toe0~[{s}Toe] ball
    NPC~{s}~RearThigh hip+0,0.05,-0.1
  NPC~Spine~[Spn0] spine1 > NPC~Spine1~[Spn1] spine2 > NPC~Spine2~[Spn2] spine4
    NPC~Neck~[Neck] neck > NPC~Head~[Head] head
    NPC~{s}~Clavicle~[{s}Clv] collar > NPC~{s}~UpperArm~[{s}Uar] shoulder
      NPC~{s}~UpperarmTwist1~[{s}Ut1] shoulder+0.05,0,0 > NPC~{s}~UpperarmTwist2~[{s}Ut2] arm2
      NPC~{s}~Forearm~[{s}Lar] elbow
        NPC~{s}~ForearmTwist1~[{s}Lt1] elbow+0.05,0,0 > NPC~{s}~ForearmTwist2~[{s}Lt2] fore2
        NPC~{s}~Hand~[{s}Hnd] wrist > NPC~{s}~Finger10~[{s}F10] knuckle > NPC~{s}~Finger11~[{s}F11] finger2
""",
    {
        "NPC~{s}~Thigh~[{s}Thg] NPC~{s}~Calf~[{s}Clf]": "NPC~{s}~Foot~[{s}ft~] NPC~{s}~Toe0~[{s}Toe]",
        "NPC~{s}~UpperArm~[{s}Uar] NPC~{s}~Forearm~[{s}Lar]": "NPC~{s}~Clavicle~[{s}Clv] NPC~{s}~Hand~[{s}Hnd] "
        "NPC~{s}~UpperarmTwist2~[{s}Ut2]",
        "NPC~Spine~[Spn0] NPC~Spine1~[Spn1] NPC~Spine2~[Spn2]": "",
        "NPC~Neck~[Neck] NPC~Head~[Head]": "",
    },
)

ILLUSION = NamedRig(
    ("L", "R"),
    """
cf_j_hips hips
  cf_j_spine01 spine1 > cf_j_spine02 spine2 > cf_j_spine03 spine4
    cf_j_neck neck > cf_j_head head | cf_j_shoulder_{s} collar > cf_j_arm00_{s} shoulder
      cf_d_arm01_{s} shoulder+0.05,0,0 | cf_j_forearm01_{s} elbow
        cf_d_forearm02_{s} fore2+0,0,0
        cf_j_hand_{s} wrist > cf_j_index01_{s} knuckle > cf_j_index02_{s} finger2 > cf_j_index03_{s} finger3
  cf_j_waist01 hips > cf_j_waist02 hips+0,0,-0.02 > cf_j_thigh00_{s} hip
    cf_d_thigh01_{s} hip+0,0,-0.05 | cf_j_leg01_{s} knee
      cf_d_leg02_{s} shin2+0,0,0 | cf_j_leg03_{s} ankle+0,0,0.01 > cf_j_foot_{s} ankle > cf_j_toes_{s} ball
""",
    {
        "cf_j_thigh00_{s} cf_j_leg01_{s}": "cf_j_foot_{s} cf_j_toes_{s}",
        "cf_j_arm00_{s} cf_j_forearm01_{s}": "cf_j_shoulder_{s} cf_j_hand_{s}",
        "cf_j_spine01 cf_j_spine02 cf_j_spine03": "",
        "cf_j_neck cf_j_head": "",
    },
)

SIMS = NamedRig(
    ("L", "R"),
    """
b__ROOT__ ground > b__ROOT_bind__ hips
  b__Pelvis__ hips > b__{s}_Thigh__ hip
    b__{s}_Calf__ knee > b__{s}_Foot__ ankle > b__{s}_Toe__ ball | b__{s}_ThighTwist__ thigh2+0,0,0
  b__Spine0__ spine1 > b__Spine1__ spine2 > b__Spine2__ spine4
    b__Neck__ neck > b__Head__ head
    b__{s}_Clavicle__ collar > b__{s}_UpperArm__ shoulder > b__{s}_Forearm__ elbow > b__{s}_Hand__ wrist
      b__{s}_Index0__ knuckle > b__{s}_Index1__ finger2 > b__{s}_Index2__ finger3
""",
    {
        "b__{s}_Thigh__ b__{s}_Calf__": "b__{s}_Foot__ b__{s}_Toe__ b__{s}_ThighTwist__",
        "b__{s}_UpperArm__ b__{s}_Forearm__": "b__{s}_Clavicle__ b__{s}_Hand__",
        "b__Spine0__ b__Spine1__ b__Spine2__": "",
        "b__Neck__ b__Head__": "",
    },
)

HUMAN = """
{} hips
  {} spine1 > {} spine4
    {} neck > {} head | {} collar > {} shoulder > {} elbow > {} wrist
      {} knuckle > {} finger2 | {} thumb
  {} hip > {} knee > {} ankle > {} ball
"""


def _human(sides: tuple[str, str], names: str) -> NamedRig:
    """Return a plain human from the names of its bones, in the order of `HUMAN`."""
    own = names.split()
    return NamedRig(
        sides,
        HUMAN.format(*own),
        {f"{own[6]} {own[7]}": own[8], f"{own[12]} {own[13]}": own[14]},
    )


FOREIGN: Mapping[str, NamedRig] = {
    "German": _human(
        ("L", "R"),
        "Becken Wirbel1 Wirbel2 Hals Kopf Schulter.{s} Oberarm.{s} Unterarm.{s} Hand.{s} Zeigefinger1.{s} "
        "Zeigefinger2.{s} Daumen.{s} Oberschenkel.{s} Unterschenkel.{s} Fuss.{s} Zehen.{s}",
    ),
    "French": _human(
        ("G", "D"),
        "bassin colonne1 colonne2 cou tete clavicule.{s} bras.{s} avant-bras.{s} main.{s} doigt1.{s} doigt2.{s} "
        "pouce.{s} cuisse.{s} mollet.{s} pied.{s} orteils.{s}",
    ),
    "Korean": _human(
        ("왼", "오"),
        "골반 척추1 척추2 목 머리 쇄골.{s} 위팔.{s} 아래팔.{s} 손.{s} 검지1.{s} 검지2.{s} 엄지.{s} "
        "넓적다리.{s} 종아리.{s} 발.{s} 발가락.{s}",
    ),
    "numbers": _human(
        ("0", "1"),
        "Bone Bone.001 Bone.002 Bone.003 Bone.004 B{s}5 B{s}6 B{s}7 B{s}8 B{s}9 B{s}10 B{s}11 "
        "B{s}12 B{s}13 B{s}14 B{s}15",
    ),
}
"""Humans whose bone names mean nothing to the extension, so that it has to go by their shape."""

RIGS: Mapping[str, NamedRig] = {
    "Mixamo, numbered": mixamo("mixamorig12:"),
    "Ready Player Me": mixamo(""),
    "Valve": VALVE,
    "3ds Max Biped": BIPED,
    "HumanIK": HUMAN_IK,
    "Xsens MVN": MVN,
    "Perception Neuron": NEURON,
    "Kinect": KINECT,
    "Roblox": ROBLOX,
    "Second Life Bento": BENTO,
    "CloudRig": CLOUDRIG,
    "Source 2": SOURCE_2,
    "Synty": SYNTY,
    "Rockstar": ROCKSTAR,
    "Skyrim": SKYRIM,
    "Illusion": ILLUSION,
    "The Sims": SIMS,
}
