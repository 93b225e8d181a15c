"""Tests mirror the product: a module is tested by the test module with its name in its room, or by the one listed here.

For example, `tests/rig/test_fcurves.py` tests `ik_addon/rig/read/fcurves.py`: nested rooms may share a folder.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tools.environments import ROOT

PRODUCT, TESTS = ROOT / "ik_addon", ROOT / "tests"
ELSEWHERE = {
    "anatomy/figure": "anatomy/test_chain_ends_named",
    "anatomy/parts": "anatomy/test_chain_ends",
    "anatomy/soles": "planting/test_contact_keys",
    "anatomy/sides": "setup/test_bend_side",
    "bake/bake_report": "bake/test_bake",
    "bake/bake_scene": "reliability/test_bake_in_scene",
    "bake/baking": "bake/test_bake",
    "bake/command_line": "shots/test_command",
    "bake/outputs": "shots/test_command",
    "bake/restore": "reliability/test_bake_destroys",
    "bake/sampling": "reliability/test_bake_in_scene",
    "bake/solved": "bake/test_bake",
    "clip/f*": "clip/test_plant",
    "compat": "pose/test_keyframes",
    "convert/dependence": "convert/test_switches",
    "convert/ik_constraint": "convert/test_convert",
    "convert/remembered": "convert/test_convert",
    "data/chain_settings": "reliability/test_safety",
    "data/choices": "reliability/test_safety",
    "data/contact_settings": "planting/test_contact_keys",
    "data/fk_store": "reliability/test_base",
    "data/neighbors": "reliability/test_neighbors",
    "data/overrides": "operators/test_chain",
    "data/preferences": "ui/test_preferences",
    "data/settings": "reliability/test_safety",
    "export/[bm]*": "export/test_skeleton",
    "goals/apply": "goals/test_snap",
    "goals/frames": "goals/test_snap_range",
    "goals/snapped": "goals/test_snap",
    "goals/spaces": "goals/test_space_switch",
    "live/live_bones": "live/test_handlers",
    "live/playback": "live/test_prefetch",
    "live/registry": "live/test_handlers",
    "live/reports": "operators/test_fix",
    "live/rig": "live/test_handlers",
    "live/solving": "live/test_order",
    "live/state": "live/test_lookup",
    "live/switches": "live/test_handlers",
    "operators/active": "operators/test_same_names",
    "operators/bake": "bake/test_bake",
    "operators/body/tool": "window/test_posing",
    "operators/body/pins": "posing/test_pins",
    "operators/body/pose": "posing/test_drag",
    "operators/bend": "setup/test_bend_side",
    "operators/character": "setup/test_character",
    "operators/clip/contacts": "planting/test_contact_keys",
    "operators/clip/options": "planting/test_plant",
    "operators/clip/skeleton": "export/test_skeleton",
    "operators/clip/plant": "planting/test_plant",
    "operators/convert": "convert/test_convert",
    "operators/clip/frame_range": "export/test_skeleton",
    "operators/gesture": "drag/test_cursor",
    "operators/goals/ik_fk": "goals/test_ik_fk",
    "operators/goals/snap": "goals/test_snap",
    "operators/goals/space_switch": "goals/test_space_switch",
    "operators/mends/chains": "operators/test_fix",
    "operators/mends/goals": "operators/test_fix",
    "operators/mends/rig": "operators/test_fix",
    "operators/presets": "setup/test_profile",
    "overlay/colors": "overlay/test_draw",
    "overlay/layout": "overlay/test_draw",
    "overlay/pins": "posing/test_pins",
    "overlay/read": "overlay/test_draw",
    "overlay/shown": "overlay/test_draw",
    "pose/channels": "rig/test_written_pose",
    "pose/constraints": "operators/test_solve",
    "pose/continuity": "bake/test_bake",
    "pose/data_paths": "reliability/test_animated_settings",
    "pose/joints": "overlay/test_draw",
    "pose/key_step": "goals/test_ik_fk",
    "pose/transforms": "rig/test_fcurves",
    "posing/extent": "posing/test_drag",
    "posing/read": "posing/test_drag",
    "planting/[afhm]*": "planting/test_plant",
    "planting/outcome": "shots/test_planted",
    "planting/p[ir]*": "planting/test_plant",
    "registration": "extension/test_lifecycle",
    "rig/plan/attachments": "live/test_order",
    "rig/plan/chain": "operators/test_solve",
    "rig/plan/chain_plan": "rig/test_limits",
    "rig/plan/dependencies": "live/test_order",
    "rig/plan/facts": "reliability/test_edits_between_frames",
    "rig/plan/groups": "rig/test_trees",
    "rig/plan/inputs": "rig/test_fcurves",
    "rig/plan/plan": "rig/test_solvers",
    "rig/plan/presence": "reliability/test_view_layers",
    "rig/plan/watch": "reliability/test_animated_settings",
    "rig/read/frames": "rig/test_fcurves",
    "rig/read/goals": "live/test_lookup",
    "rig/read/keyed": "live/test_prefetch",
    "rig/read/orientation": "rig/test_ends",
    "rig/read/sample": "reliability/test_same_pose",
    "rig/write/changes": "live/test_order",
    "rig/write/limb": "rig/test_written_pose",
    "rig/write/lookup": "live/test_lookup",
    "rig/write/once": "rig/test_written_pose",
    "rig/write/outcomes": "rig/test_limits",
    "rig/write/solving": "rig/test_solvers",
    "rig/write/waves": "live/test_order",
    "setup/constraints": "convert/test_switches",
    "setup/new_chain": "operators/test_chain",
    "setup/own_target": "operators/test_fix",
    "setup/present": "setup/test_bend_side",
    "setup/preset_file": "setup/test_profile",
    "setup/removal": "operators/test_chain",
    "shots/jobs": "shots/test_command",
    "shots/tracks": "shots/test_plots",
    "shots/shot": "shots/test_command",
    "solve/alone": "rig/test_held_limbs",
    "solve/bodies": "solve/limited/test_limits",
    "solve/body/ends": "solve/body/test_posing",
    "solve/body/forms": "solve/body/test_sweep",
    "solve/body/limits": "solve/body/test_posing",
    "solve/body/problem": "solve/body/test_posing",
    "solve/body/step": "solve/body/test_posing",
    "solve/body/tree": "solve/body/test_posing",
    "solve/checks": "solve/test_input",
    "solve/free/arc": "solve/free/test_even_bend",
    "solve/free/axes": "solve/test_properties",
    "solve/free/chains": "solve/test_properties",
    "solve/free/single_bend": "solve/free/test_single",
    "solve/legs": "solve/free/test_folds",
    "solve/limb/cone_*": "solve/limb/test_limb",
    "solve/limb/folds": "solve/free/test_folds",
    "solve/limb/frames": "solve/limb/test_limb",
    "solve/limb/pose": "solve/limb/test_limb",
    "solve/limb/roll": "solve/limb/test_limb",
    "solve/limb/side": "solve/limb/test_limb",
    "solve/limb/two_bones": "solve/limb/test_limb",
    "solve/limited/body": "solve/limited/test_kernels",
    "solve/limited/descent": "solve/limited/test_kernels",
    "solve/limited/goals": "solve/limited/test_trees",
    "solve/limited/guess": "solve/limited/test_kernels",
    "solve/limited/newton*": "solve/limited/test_settled",
    "solve/limited/objectives": "solve/limited/test_kernels",
    "solve/limited/pole": "solve/limited/test_kernels",
    "solve/limited/restarts": "solve/limited/test_limits",
    "solve/limited/search": "solve/limited/test_settled",
    "solve/limited/task": "solve/limited/test_kernels",
    "solve/lookup_table": "solve/test_lookup",
    "solve/maths/calculus": "solve/limited/test_kernels",
    "solve/maths/crowd": "solve/limited/test_kernels",
    "solve/maths/kernel*": "solve/free/test_single",
    "solve/maths/lines": "setup/test_bend_side",
    "solve/maths/reaching": "solve/limited/test_kernels",
    "solve/maths/sums": "solve/test_repeatable",
    "solve/maths/vectors": "solve/free/test_single",
    "solve/memory": "solve/test_repeatable",
    "solve/problem": "solve/test_input",
    "solve/side_start": "solve/free/test_bend_side",
    "solve/solver": "solve/test_properties",
    "translation/sentences": "translation/test_catalogs",
    "ui/active_row": "ui/test_panel",
    "ui/bake_report": "bake/test_bake",
    "ui/highlight": "window/test_posing",
    "ui/preferences/*": "ui/test_preferences",
    "ui/panels/body": "posing/test_pins",
    "ui/panels/chain": "ui/test_panel",
    "ui/panels/chains": "ui/test_panel",
    "ui/panels/character": "setup/test_character",
    "ui/panels/clip": "window/test_panel",
    "ui/panels/limits": "ui/test_menus",
    "ui/panels/tools": "operators/test_tools",
    "ui/presets": "ui/test_menus",
}
"""Modules, or patterns of them, without their own test module, and the test module that covers them."""
SHIPPED = PRODUCT / "presets"
MODULES = sorted(p for p in PRODUCT.rglob("*.py") if p.name != "__init__.py" and SHIPPED not in p.parents)


def name_of(module: Path) -> str:
    return module.relative_to(PRODUCT).with_suffix("").as_posix()


def has_own(module: Path) -> bool:
    own = module.relative_to(PRODUCT)
    return any((TESTS / room / f"test_{module.stem}.py").is_file() for room in (own.parts[0], own.parent))


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_module_has_its_own_test_module_or_is_listed(module: Path) -> None:
    lines = [pattern for pattern in ELSEWHERE if fnmatchcase(name_of(module), pattern)]
    assert len(lines) == (0 if has_own(module) else 1), lines


@pytest.mark.parametrize("line", ELSEWHERE)
def test_listed_modules_exist(line: str) -> None:
    assert (TESTS / f"{ELSEWHERE[line]}.py").is_file()
    assert any(fnmatchcase(name_of(module), line) for module in MODULES)
