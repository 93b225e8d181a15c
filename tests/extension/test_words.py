"""Names in the product use the field's words, and modules are small enough to read in one go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PRODUCT = Path(__file__).parents[2] / "ik_addon"
MODULES = sorted(PRODUCT.rglob("*.py"))

STANDARD = {
    "ahead": "prefetch",
    "aims": "objectives",
    "arms": "lever arms",
    "base": "FK store, FK pose or sub-base",
    "carrier": "attachment or parent bone",
    "ease": "mobility or softness",
    "following": "playback",
    "missing": "residual",
    "speeds": "Jacobian",
    "steady": "lookup",
    "told": "determined or sampled",
    "untold": "not determined",
    "zeros": "rest frames",
}
"""Words that names in the product must not contain, and the field's word for each."""
KEPT = {
    ("clip/contacts", "speeds"): "how fast a point moves",
    ("data/chain_settings", "base"): "the name under which files hold the FK store",
    ("anatomy/members", "arms"): "the limbs",
    ("anatomy/sides", "arms"): "the limbs",
    ("anatomy/members", "missing"): "parts that a figure does not have",
    ("operators/goals/space_switch", "missing"): "an object that is not there",
}


def names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module defines: of classes, functions, arguments, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def words(name: str) -> set[str]:
    """Return the words of a name in snake or camel case."""
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def module_of(path: Path) -> str:
    return path.relative_to(PRODUCT).with_suffix("").as_posix()


@pytest.mark.parametrize("path", MODULES, ids=module_of)
def test_names_use_the_words_of_the_field(path: Path) -> None:
    allowed = {name for module, name in KEPT if module == module_of(path)} | {"lever_arms"}
    found = {name for name in names(ast.parse(path.read_text(encoding="utf-8"))) if words(name) & STANDARD.keys()}
    assert found - allowed == set()
    assert {name for module, name in KEPT if module == module_of(path)} <= found, "what is not needed any more"


def test_words_are_extracted_from_names() -> None:
    assert "base" in words("IKAddonBase")
    assert words("_has_base") & STANDARD.keys()
