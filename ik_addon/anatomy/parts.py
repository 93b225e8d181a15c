"""Parts of a body and sides as bone names state them, in the conventions of common rigs.

Names are only evidence: `chain_ends` checks them against hierarchy and measurements.
"""

import re
import unicodedata
from enum import Enum, auto
from functools import cache


class Part(Enum):
    """The part of a body that a bone is named after."""

    UNKNOWN = auto()
    HELPER = auto()
    """Deforms or moves other bones without being a segment: a twist, corrective or mechanism bone."""
    GIRDLE = auto()
    """Carries limbs and moves with the body: a shoulder, the hips."""
    UPPER_ARM = auto()
    FOREARM = auto()
    HAND = auto()
    FINGER = auto()
    THIGH = auto()
    SHIN = auto()
    FOOT = auto()
    SPINE = auto()
    NECK = auto()


ARM = (Part.UPPER_ARM, Part.FOREARM, Part.HAND)
LEG = (Part.THIGH, Part.SHIN, Part.FOOT)
UPPER = (Part.UPPER_ARM, Part.THIGH)
LOWER = (Part.FOREARM, Part.SHIN)
EXTREMITIES = (Part.HAND, Part.FOOT)
LIMBS = (*UPPER, *LOWER)

LEFT = frozenset({"l", "left", "lft", "lf", "le", "左"})
RIGHT = frozenset({"r", "right", "rgt", "rt", "ri", "右"})
NOISE = frozenset(
    {"jnt", "joint", "jt", "bone", "def", "deform", "bind", "skin", "skel", "c", "m", "fk", "ctrl", "ctl", "con"}
    | {"control", "stretch", "nostr", "anim", "bend"}
)
"""Words that rigs put into the names of all their bones."""
PREFIX = re.compile(r"^(?:.*[:|]|(?:DEF|ORG|MCH|VIS|WGT)-|J_(?:Bip|Sec|Adj)_|CC_Base_|ValveBiped\.|Bip\d+|SKEL_)")

LEGS = r"(?:front|fore|hind|rear|back)?leg"

VERTEBRAE = frozenset({"L5", "L3", "T12", "T8"})
"""Spine bones in Xsens' naming; "L" stands for lumbar here, not for left."""
SIDE_FIRST = re.compile(r"^([Ll]eft|[Rr]ight)(?=[a-z])")
"""Names that join a whole word for the side and a part without a change of case: Lefthand."""
RUN_TOGETHER = re.compile(
    r"^([lr])(clavicle|humerus|radius|wrist|hand|fingers|thumb|hipjoint|femur|tibia|foot|toes)(?=\d*$)"
)
"""Names that join side and part without a separator, as in Acclaim skeletons."""

# The first match counts. Names are matched in lower case, without sides, numbers and noise.
NAMES: tuple[tuple[Part, re.Pattern[str]], ...] = tuple(
    (part, re.compile(rf"\b(?:{words})\b"))
    for part, words in (
        (
            Part.SPINE,
            r"spine\w*|chest\w*|torso|abdomen\w*|ab|(?:lower|upper) ?back|thorax|vertebra\w*|waist|stomach|belly|"
            r"上半身|下半身",
        ),
        (Part.NECK, r"\w*neck\w*|head|首|頭"),
        (Part.HAND, r"palm|\w*carp(?:als?|us)"),
        (Part.FINGER, r"thumb\w*|index\w*|middle|ring|pinky|pinkie|little|finger\w*|[親人中薬小]指"),
        (Part.HAND, r"hand|wrist|手首"),
        (
            Part.FOOT,
            r"\w*foot|ankle|toes?|toe ?base|big ?toe\w*|ball|heel|hoof|paw|hock|cannon|pastern|fetlock|"
            r"\w*tars(?:al|als|us)|足首|つま先",
        ),
        (
            Part.FOREARM,
            r"(?:fore|lower|low|lo|f) ?(?:arm|wing)|(?:arm|wing) ?(?:lower|low|lo)|elbow|radius|ulna|ひじ|肘",
        ),
        (Part.UPPER_ARM, r"(?:upper|up|u) ?(?:arm|wing)|shldr|bicep|humerus|arm|wing|腕"),
        (
            Part.SHIN,
            rf"shin|calf|(?:lower|low|lo) ?{LEGS}|{LEGS} ?(?:lower|low|lo)|knee|tibia|stifle|gaskin|ひざ|膝",
        ),
        (Part.THIGH, rf"thigh|(?:upper|up) ?{LEGS}|femur|{LEGS}|足"),
        (
            Part.GIRDLE,
            r"shoulder|clav(?:icle)?|collar|scapula|coxa|trochanter|hips?|hip ?joint|pelvis|root|body|cog|master|肩",
        ),
    )
)
HELPERS = re.compile(
    r"\b(?:\w*twists?|roll|helper|correct\w*|cor|share|part|socket|rock|ik|pole|target|tgt|parent|tweak|"
    r"widget|switch|aim)\b|捩"
)
"""Matches bones that deform or move others, anywhere in the hierarchy."""
ENDS = re.compile(r"\b(?:end|nub|leaf|site)\b")
"""Matches bones without children that only mark where their parent ends."""
ANIMAL = re.compile(
    r"\b(?:wing|feather|primary|tertial|\w*tarsus|hoof|paw|claw|cannon|pastern|fetlock|hock|stifle|gaskin|"
    r"horse ?link)\b"
)
"""Matches words that never occur in the limbs of a human."""

FRONT = re.compile(r"\b(?:front|fore)(?!arm|wing)")
"""Matches front legs."""


def words(name: str) -> list[str]:
    """Split a bone's name into words in lower case, without sides, numbers and the prefixes of rigs."""
    return [word for word in _all_words(name) if word not in LEFT | RIGHT]


def side_of(name: str) -> int:
    """Return 1 for the name of a bone on the left, -1 on the right, 0 where the name doesn't say."""
    found = set(_all_words(name))
    return bool(found & LEFT) - bool(found & RIGHT)


@cache
def _all_words(name: str) -> tuple[str, ...]:
    name = PREFIX.sub("", unicodedata.normalize("NFKC", name))
    if name in VERTEBRAE:
        return ("spine",)
    name = SIDE_FIRST.sub(r"\1_", RUN_TOGETHER.sub(r"\1_\2", name))
    name = re.sub(r"^([LRlr左右])(?=[A-Z]|[^\x00-\x7f])", r"\1_", name)
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+", name))


@cache
def stem(name: str) -> str:
    """Join the words of a name, without noise words unless there is nothing else."""
    found = words(name)
    return " ".join([word for word in found if word not in NOISE] or found)


@cache
def is_helper(name: str) -> bool:
    """Return whether a name is that of a bone that deforms or moves others."""
    return name.startswith(("MCH-", "VIS-", "VIS_", "WGT-")) or HELPERS.search(stem(name)) is not None


def likeness_of(name: str, other: str) -> float:
    """Return the share of words, 0 to 1, that two names have in common, ignoring roles such as target or pole."""
    own, others = (set(HELPERS.sub("", stem(text)).split()) for text in (name, other))
    return len(own & others) / max(len(own | others), 1)


@cache
def is_end(name: str) -> bool:
    """Return whether a name is that of a bone that only marks where another one ends."""
    return ENDS.search(stem(name)) is not None


@cache
def is_animal(name: str) -> bool:
    """Return whether a name is that of a bone in the limb of an animal."""
    return ANIMAL.search(stem(name)) is not None


@cache
def part_in(name: str) -> Part:
    """Return the part of a body that a name mentions, whatever the bone does for it."""
    text = stem(name)
    return next((part for part, pattern in NAMES if pattern.search(text)), Part.UNKNOWN)


def is_ambiguous(name: str) -> bool:
    """Return whether a name means the upper part of a limb in some rigs and the lower one in others."""
    return stem(name) in ("arm", "leg", "wing")


def is_thumb(name: str) -> bool:
    """Return whether a name is that of a thumb bone; MakeHuman numbers fingers from the thumb."""
    return "thumb" in stem(name) or "親" in name or name.startswith("finger1-")
