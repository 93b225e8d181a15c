"""Nothing from a file is executed, only files that the user names are written, and tampered settings do no harm."""

import ast
import contextlib
import itertools
import math
import zipfile
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.faults import stored

# ---- the code

RUNS = {"eval", "exec", "__import__", "import_module", "run_path", "run_module", "driver_add"}
"""Functions that execute what they are given."""
WRITES = {
    *("open", "write_text", "write_bytes", "mkdir", "unlink", "rmtree", "touch"),
    *("save_as_mainfile", "savez", "save"),
}
"""Functions that write files."""
FAR = {"os", "socket", "http", "urllib", "subprocess", "ctypes", "pickle", "marshal", "importlib", "runpy", "shutil"}
"""Modules that reach outside the program or execute what they read."""
WRITERS = ("bake/", "cli/", "ui/operators/fixes.py")
"""Where files are written that the user names, and where collections are unlinked from scenes."""


def reached(node: ast.AST) -> set[str]:
    """Return the modules that a statement imports, and the name of what an expression refers to."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").partition(".")[0]} if not node.level else set()
    return {node.attr} if isinstance(node, ast.Attribute) else {node.id} if isinstance(node, ast.Name) else set()


def test_the_code_executes_nothing_and_reaches_nowhere(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        for name in (name for name in archive.namelist() if name.endswith(".py")):
            tree = ast.parse(archive.read(name))
            nodes = list(ast.walk(tree))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            calls = {word for node in nodes if isinstance(node, ast.Call) for word in reached(node.func)}
            modules = {
                word for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for word in reached(node)
            }
            attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            assert not calls & RUNS | names & {"compile"} | modules & FAR | attributes & {"__globals__"}, name
            assert name.removeprefix("ik_addon/").startswith(WRITERS) or not calls & WRITES, name


EVIL = {
    "a call": "open({trace!r}, 'w').close()",
    "a call in a value": "profile.iterations = open({trace!r}, 'w').close() or 5",
    "a call of radians": "import math\nprofile.iterations = math.radians(open({trace!r}, 'w').close() or 5)",
    "a name of its own": "profile = open({trace!r}, 'w')",
    "a format": "profile.iterations = f'{{open({trace!r}, 'w')}}'",
}
"""Presets that would write a file if they were executed."""


def test_presets_are_read_and_not_executed(tmp_path: Path) -> None:
    ob, _target = rigs.arm()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    ob.data.bones.active = ob.data.bones["lower"]
    before = ob.pose.bones["lower"].ik_addon.iterations
    trace = tmp_path / "trace"
    folder = Path(bpy.utils.user_resource("SCRIPTS", path="presets/ik_addon", create=True))
    for kind, path in itertools.product(EVIL, (folder / "Evil.py", tmp_path / "Evil.py", folder / ".." / "Evil.py")):
        path.write_text(EVIL[kind].format(trace=str(trace)), encoding="utf-8")
        try:
            with pytest.raises(RuntimeError, match=r"is not a chain preset|'Evil' can't be read"):
                bpy.ops.ik_addon.preset_apply(filepath=str(path))
        finally:
            path.unlink()
    assert not trace.exists()
    assert ob.pose.bones["lower"].ik_addon.iterations == before


# ---- tampered settings

HOSTILE: dict[str, Any] = {
    "not a number": math.nan,
    "infinite": math.inf,
    "giant": 1e38,
    "negative": -1e9,
    "negative count": -5,
    "a milliard": 10**9,
    "least int": -(2**31),
    "text": "hostile'\"\\]",
    "nested": "[" * 100_000,
    "names": '["lower b", null, 3, ["upper b"], "missing"]',
    "half a character": '{"\\ud800": 0.0, "lower a": 0.0}',
    "not finite": '{"lower a": NaN, "upper a": Infinity}',
    "bytes": b"\xff\xfe",
    "numbers": [1.0, 2.0],
    "nothing": [],
    "group": {"a": 1},
    "true": True,
    "mesh": None,
    "itself": None,
}
GOALS = ("target_object", "target_bone", "pole_object", "pole_bone")
SETTINGS = (
    *("is_chain", "enabled", "solver", "chain_length", *GOALS, "pole_angle"),
    *("iterations", "tolerance", "out_of_reach", "softness", "push_limit", "use_limits", "use_rotation", "planar"),
    *("weight", "influence", "base", "resting", "of_its_own"),
)


def arms(*names: str) -> bpy.types.Object:
    """An armature with an arm of each name and a chain on each arm."""
    ob = rigs.armature()
    for i, name in enumerate(names):
        rigs.add_arm(ob, 3.0 * i, [f"upper {name}", f"lower {name}"], f"Target {name}")
        ob.pose.bones[f"upper {name}"].rotation_quaternion = (0.98, 0.0, 0.17, 0.1)
    bpy.context.view_layer.update()
    return ob


def assert_others_go_on(addon: Addon, ob: bpy.types.Object, other: str = "b") -> None:
    """Assert that tampered chains are solved or refused with a message, and that the other chain is solved."""
    for bone in ob.pose.bones:
        report = addon.report(ob, bone.name)
        assert report is None or "Internal error" not in report.message
    assert addon.report(ob, f"lower {other}").reached
    assert np.isfinite(rigs.channels(ob)).all()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_settings_are_refused_with_a_message(addon: Addon, kind: str, tmp_path: Path) -> None:
    ob = arms(*SETTINGS, "b")
    value = {"mesh": bpy.data.meshes.new("Mesh"), "itself": ob}.get(kind, HOSTILE[kind])
    rigs.go_live(ob)
    for setting in SETTINGS:
        with contextlib.suppress(TypeError):  # Blender cannot store this value there
            stored(ob.pose.bones[f"lower {setting}"])[setting] = value
    for part in ("stored", "rotation_mode", "channels", "noted", "written"):
        base = stored(ob.pose.bones["upper is_chain"]).get("base", {})
        with contextlib.suppress(TypeError):
            if part in base:
                base[part] = [value] * 17 if part in {"channels", "written"} and isinstance(value, float) else value
    rigs.save_and_open(tmp_path / "hostile.blend")
    ob = bpy.data.objects["Rig"]
    assert_others_go_on(addon, ob)
    bpy.context.scene.frame_set(3)
    rigs.shift(ob.pose.bones["lower b"].ik_addon.target, x=0.1)
    assert_others_go_on(addon, ob)
    ob.ik_addon.live = False
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    assert_others_go_on(addon, ob)
    verdicts = [addon.report(ob, bone.name) for bone in ob.pose.bones]
    if any(verdict is not None and verdict.failed for verdict in verdicts):
        with pytest.raises(RuntimeError, match=r"has a value that is not allowed|has no bone"):
            bpy.ops.ik_addon.bake(frame_start=1, frame_end=3)


@pytest.mark.parametrize("kind", ["not a number", "negative count", "text", "half a character", "nothing", "mesh"])
def test_hostile_settings_disturb_no_other_chain_in_the_interface(
    addon: Addon, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Covers the panel's rows, the overlay, the command line, and the operators on each chain."""
    panel, fix, reports = (addon.module(name) for name in ("ui.panels.chain", "ui.operators.fixes", "live.reports"))
    view_layer, draw = bpy.context.view_layer, addon.module("ui.overlay.read").Reader()
    wanted = addon.module("ui.overlay.read").Wanted()
    settings = (*GOALS, "solver", "chain_length", "influence", "resting", "pin")
    ob = arms(*settings, "b")
    value = {"mesh": bpy.data.meshes.new("Mesh"), "itself": ob}.get(kind, HOSTILE[kind])
    for setting in settings:
        with contextlib.suppress(TypeError):
            stored(ob.pose.bones[f"lower {setting}"])[setting] = value
    view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    ob.ik_addon.live = True
    view_layer.update()
    for tip in addon.module("rig.plan.chain").tips(ob):
        ob.data.bones.active = tip.bone
        report = reports.get(ob, tip.name)
        _icon, text = panel.state_of(tip, report)
        assert len(text) < 200
        fix.fix_of(tip, report, view_layer)
        assert panel.texts_of(tip, report)
        addon.module("ui.panels.chain").shares_bones(tip)
        addon.module("chains.profile").names_of(tip)
        assert draw.read(view_layer, draw.rigs(view_layer, None), wanted)[1] is not None
        for operator, options in (
            ("snap_target", {"chains": "ACTIVE"}),
            ("preset_add", {"name": f"Own {tip.name}"}),
            ("preset_add", {"name": f"Own {tip.name}", "remove_name": True}),
            ("mirror_chain", {}),
        ):
            with contextlib.suppress(RuntimeError):  # a traceback, if any, is printed and fails the test
                getattr(bpy.ops.ik_addon, operator)(**options)
    assert panel.state_of(ob.pose.bones["lower b"], reports.get(ob, "lower b")) == ("CHECKMARK", "Reached")
    capfd.readouterr()
    if addon.module("cli.command").main(["--range", "1", "2"]):
        said = capfd.readouterr().err
        assert said.startswith("ik_bake: The chain on 'lower ")
        assert "can't be baked" in said
        assert len(said.splitlines()) == 1
        assert addon.module("cli.command").main(["--range", "1", "2", "--chains", "lower b"]) == 0


@pytest.mark.parametrize(
    ("place", "policy"),
    [((30.0, 0.0, 0.0), "EXTEND"), ((1e30, -1e30, 1e30), "PUSH_ROOT"), ((0.0, 0.0, 1e-30), "STRETCH")],
)
def test_giant_counts_and_distances_take_no_time(addon: Addon, place: tuple[float, float, float], policy: str) -> None:
    ob = rigs.limb(rigs.bent(6, 0.3), list("abcdef"))
    for bone in ob.pose.bones:
        bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.1, 0.1
    rigs.chain(ob, "f", rigs.empty("Target", place), 10**9, iterations=2**31 - 1, tolerance=1e-9, out_of_reach=policy)
    ob.ik_addon.live = True
    bpy.context.view_layer.update()  # running all iterations would take hours
    report = addon.report(ob, "f")
    assert "only 6 bones are available" in " ".join(report.remarks)
    assert np.isfinite(rigs.channels(ob)).all()
