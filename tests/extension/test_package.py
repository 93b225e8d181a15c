"""The zip that users install, and its manifest: built by Python alone, and identical to Blender's own build."""

import importlib.util
import posixpath
import subprocess
import sys
import tomllib
import zipfile
from html.parser import HTMLParser
from pathlib import Path

from tools import extension
from tools.environments import OLDEST, ROOT


def blender_ext(*arguments: str | Path) -> None:
    """Run the command line of the extension system in the Blender under test."""
    spec = importlib.util.find_spec("bpy")
    assert spec is not None
    assert spec.origin is not None
    (tool,) = Path(spec.origin).parent.glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py")
    command = [sys.executable, str(tool), *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def contents(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as archive:
        assert len(archive.namelist()) == len(set(archive.namelist()))
        return {name: archive.read(name) for name in archive.namelist()}


def test_contains_the_same_files_as_blenders_own_build(package: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.zip"
    blender_ext("build", "--source-dir", ROOT, "--output-filepath", own)
    assert contents(package) == contents(own)


def test_is_valid_for_blender(package: Path) -> None:
    blender_ext("validate", package)


def test_contains_only_what_runs(package: Path) -> None:
    kinds = ("*.py", "*.json", "*.dat", "docs/**/*.html", "docs/images/*.*")
    files = (path for kind in kinds for path in (ROOT / "ik_addon").rglob(kind))
    code = {path.relative_to(ROOT).as_posix() for path in files}
    assert set(contents(package)) == {"LICENSE", "__init__.py", "blender_manifest.toml"} | code


class Page(HTMLParser):
    """What a web page links to and shows, and the headings that others can link to."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.headings: set[str] = set()
        self.feed(content.decode())

    def handle_starttag(self, _tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.headings.add(value)


def test_holds_the_guide_whose_links_lead_somewhere(package: Path) -> None:
    files = contents(package)
    pages = {name: Page(content) for name, content in files.items() if name.endswith(".html")}
    sources = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name == "guide" or path.stem == "guide"]
    assert len(sources) > 15
    written = {f"ik_addon/{path.relative_to(ROOT).with_suffix('.html').as_posix()}" for path in sources}
    assert written <= pages.keys()
    broken = []
    for name, page in pages.items():
        for link in (link for link in page.links if "://" not in link):
            place, _mark, heading = link.partition("#")
            found = posixpath.normpath(posixpath.join(posixpath.dirname(name), place)) if place else name
            if found not in files or (heading and heading not in pages[found].headings):
                broken.append(f"{name}: {link}")
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 100
    assert any(name.endswith(".png") for name in files)


def test_same_sources_give_the_same_bytes(package: Path, tmp_path: Path) -> None:
    assert extension.build(tmp_path).read_bytes() == package.read_bytes()


def test_is_built_without_blender_and_other_packages(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tools import extension; extension.build(Path(sys.argv[1])); "
        "print({'bpy', 'numpy'} & set(sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-S", "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.stdout == "set()\n", answer.stderr
    assert list(tmp_path.glob("*.zip"))


# ---- rules for the manifest that Blender's own `validate` does not check


MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))


def test_names_itself_and_its_license_as_scripts_and_blender_know_them() -> None:
    assert MANIFEST["id"] == "ik_addon"
    assert MANIFEST["tags"] == ["Animation", "Rigging"]
    assert MANIFEST["license"] == ["SPDX:GPL-3.0-or-later"]
    assert "Version 3, 29 June 2007" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_minimum_blender_version_is_the_oldest_tested() -> None:
    assert MANIFEST["blender_version_min"] == ".".join(OLDEST.version.split(".")[:2]) + ".0"


def test_has_no_unknown_key_and_asks_for_files_alone() -> None:
    """Blender brings numpy, and there is nothing to load; a latest version would lock out users of a newer Blender."""
    known = {
        *("schema_version", "id", "version", "name", "tagline", "maintainer", "type", "license", "tags", "build"),
        *("blender_version_min", "website", "copyright", "permissions"),
    }
    assert set(MANIFEST) <= known
    assert list(MANIFEST["permissions"]) == ["files"]
