"""The choices of enumerations in chain and bone settings, as Blender expects them: identifiers, names, tooltips."""

SOLVERS = (
    ("AUTO", "Automatic", "Two-Bone for chains of two bones, Arc for all others"),
    ("TWO_BONE", "Two-Bone", "Exact solution for a limb: upper and lower bone"),
    ("FABRIK", "Tip Leads (FABRIK)", "The tip leads: small moves only turn the joints near it"),
    ("EVEN_BEND", "Arc (Even Bend)", "The chain turns to the target as a whole, and all joints share the bend"),
)
OUT_OF_REACH = (
    ("EXTEND", "Extend", "The chain points straight at a target that it can't reach"),
    (
        "PUSH_ROOT",
        "Push Root",
        "The root moves so that the tip still reaches the target; the root bone must not be connected",
    ),
    ("STRETCH", "Stretch", "The bones lengthen so that the tip still reaches the target"),
)
ROLES = (
    ("TARGET", "Target", "What the tip of the chain follows"),
    ("POLE", "Pole", "What the chain bends towards"),
)
PINS = (
    ("LOCATION", "Location", "The head of the bone stays in place"),
    ("ROTATION", "Rotation", "The bone keeps its orientation"),
)
