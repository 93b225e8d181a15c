"""Animals with the bone names of common rigs, built like the characters in `rigs_named`."""

from __future__ import annotations

from collections.abc import Mapping

from tests.rigs_named import NamedRig

QUADRUPED = {
    "croup": (0.0, 0.6, 1.4),
    "loin": (0.0, 0.2, 1.35),
    "back": (0.0, -0.2, 1.35),
    "withers": (0.0, -0.5, 1.4),
    "poll": (0.0, -1.0, 1.8),
    "muzzle": (0.0, -1.3, 1.7),
    "dock": (0.0, 0.8, 1.35),
    "hair": (0.0, 1.1, 1.1),
    "hip": (0.15, 0.6, 1.3),
    "stifle": (0.15, 0.45, 0.95),
    "hock": (0.15, 0.75, 0.6),
    "fetlock": (0.15, 0.68, 0.15),
    "hoof": (0.15, 0.6, 0.0),
    "blade": (0.08, -0.35, 1.4),
    "point": (0.15, -0.65, 1.1),
    "elbow": (0.15, -0.45, 0.85),
    "carpus": (0.15, -0.46, 0.5),
    "ffetlock": (0.15, -0.47, 0.15),
    "fhoof": (0.15, -0.53, 0.0),
}

BIPED_HORSE = NamedRig(
    ("L", "R"),
    """
Bip01 ground > Bip01_Pelvis croup
  Bip01_Spine loin > Bip01_Spine1 back > Bip01_Neck withers
    Bip01_{s}_Clavicle blade > Bip01_{s}_UpperArm point > Bip01_{s}_Forearm elbow > Bip01_{s}_Hand carpus
      Bip01_{s}_Finger0 ffetlock
    Bip01_Head poll
  Bip01_{s}_Thigh hip > Bip01_{s}_Calf stifle > Bip01_{s}_HorseLink hock > Bip01_{s}_Foot fetlock
    Bip01_{s}_Toe0 hoof
  Bip01_Tail dock > Bip01_Tail1 hair
""",
    {
        "Bip01_{s}_Thigh Bip01_{s}_Calf Bip01_{s}_HorseLink": "Bip01_{s}_Foot Bip01_{s}_Toe0",
        "Bip01_{s}_UpperArm Bip01_{s}_Forearm": "Bip01_{s}_Clavicle Bip01_{s}_Hand",
        "Bip01_Tail Bip01_Tail1": "",
    },
    QUADRUPED,
)

HORSE = NamedRig(
    ("Left", "Right"),
    """
Root ground > Pelvis croup
  Lumbar loin > Thoracic back > Chest withers
    {s}_Scapula blade > {s}_Humerus point > {s}_Radius elbow > {s}_Metacarpus carpus > {s}_FrontPastern ffetlock
      {s}_FrontHoof fhoof
    Neck poll > Head muzzle
  {s}_Femur hip > {s}_Tibia stifle > {s}_Metatarsus hock > {s}_HindPastern fetlock > {s}_HindHoof hoof
""",
    {
        "{s}_Femur {s}_Tibia {s}_Metatarsus": "{s}_HindPastern {s}_HindHoof",
        "{s}_Humerus {s}_Radius {s}_Metacarpus": "{s}_Scapula {s}_FrontPastern {s}_FrontHoof",
    },
    QUADRUPED,
)

DOG = NamedRig(
    ("l", "r"),
    """
root ground > pelvis croup
  spine_01 loin > spine_02 back > spine_03 withers
    clavicle_{s} blade > frontleg_upper_{s} point > frontleg_lower_{s} elbow > frontleg_foot_{s} carpus
      frontleg_toe_{s} ffetlock
    neck_01 poll > head muzzle
  thigh_{s} hip > calf_{s} stifle > foot_{s} hock > ball_{s} fetlock | tail_01 dock > tail_02 hair
""",
    {
        "thigh_{s} calf_{s} foot_{s}": "ball_{s}",
        "frontleg_upper_{s} frontleg_lower_{s} frontleg_foot_{s}": "clavicle_{s} frontleg_toe_{s}",
        "tail_01 tail_02": "",
    },
    QUADRUPED,
)

INSECT = NamedRig(
    ("L", "R"),
    """
thorax body
  coxa_front_{s} front > femur_front_{s} front+0.05,0,0 > tibia_front_{s} front+0.2,0,0.15
    tarsus_front_{s} front+0.35,0,-0.1
  coxa_mid_{s} mid > femur_mid_{s} mid+0.05,0,0 > tibia_mid_{s} mid+0.2,0,0.15 > tarsus_mid_{s} mid+0.35,0,-0.1
  coxa_hind_{s} hind > femur_hind_{s} hind+0.05,0,0 > tibia_hind_{s} hind+0.2,0,0.15
    tarsus_hind_{s} hind+0.35,0,-0.1
""",
    {
        f"femur_{leg}_{{s}} tibia_{leg}_{{s}}": f"coxa_{leg}_{{s}} tarsus_{leg}_{{s}}"
        for leg in ("front", "mid", "hind")
    },
    {"body": (0.0, 0.0, 0.2), "front": (0.05, -0.2, 0.2), "mid": (0.05, 0.0, 0.2), "hind": (0.05, 0.2, 0.2)},
)

RIGS: Mapping[str, NamedRig] = {
    "Biped horse": BIPED_HORSE,
    "horse": HORSE,
    "dog": DOG,
    "insect": INSECT,
}
