"""What the code may import: Blender, its numpy, and Python; the solvers work without Blender."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.environments import ROOT

BLENDER = {
    "aud",
    "bl_math",
    "bl_operators",
    "bl_ui",
    "blf",
    "bmesh",
    "bpy",
    "bpy_extras",
    "rna_keymap_ui",
    "gpu",
    "gpu_extras",
    "idprop",
    "imbuf",
    "mathutils",
}
SOURCES = sorted((ROOT / "ik_addon").rglob("*.py"))
SOLVERS = sorted((ROOT / "ik_addon" / "solve").rglob("*.py"))


def absolute_imports(source: Path) -> Iterator[str]:
    """Yield the top-level names of modules that `source` imports other than relatively."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.relative_to(ROOT).as_posix())
def test_imports_only_blender_numpy_and_python(source: Path) -> None:
    allowed = {"numpy"} | sys.stdlib_module_names
    if source not in SOLVERS:
        allowed |= BLENDER
    # An extension imports its own modules relatively, since Blender decides the name of its package.
    assert set(absolute_imports(source)) <= allowed


SOLVE_WITHOUT_BLENDER = """
import importlib, pkgutil, sys
for name in ("bpy", "mathutils", "gpu"):
    sys.modules[name] = None  # importing it fails
import ik_addon, ik_addon.solve
for module in pkgutil.walk_packages(ik_addon.solve.__path__, "ik_addon.solve."):
    importlib.import_module(module.name)

import numpy as np
from ik_addon.solve import Goal, Problem, solve
joints = np.array([[[0, 0, 0], [0, 1, 0.1], [0, 2, 0]]], dtype=float)
frames = np.tile(np.eye(3), (1, 2, 1, 1))
solution = solve(Problem(joints, frames, Goal(np.array([[1.0, 1.0, 0.0]]))))
assert solution.reached.all(), solution
assert np.allclose(solution.joints[0, -1], [1, 1, 0], atol=1e-4), solution
"""


def test_solvers_work_without_blender() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SOLVE_WITHOUT_BLENDER],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
