"""The supported Blender versions, the Python each needs, and a virtual environment for each."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venv"


class ToolError(Exception):
    """A sentence for the developer: what is wrong and how to fix it."""


class NoPythonError(ToolError):
    """The Python of an environment was not found."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment: its folder below `.venv`, its Python, and everything installed in it."""

    name: str
    python: str
    requirements: tuple[str, ...]
    source: str | None = None
    """The only requirement that is built from source."""
    setup: tuple[str, ...] = ()
    """Meson options for that build."""

    @property
    def options(self) -> tuple[str, ...]:
        """Return pip's options besides the requirements."""
        from_source = (f"--no-binary={self.source}",) if self.source else ()
        return (*from_source, *(f"--config-settings=setup-args={option}" for option in self.setup))


@dataclass(frozen=True)
class Blender:
    """A Blender to test on, as a `bpy` wheel."""

    version: str
    python: str
    numpy: str

    @property
    def environment(self) -> Environment:
        """Return the environment that has this Blender as a module."""
        requirements = (f"bpy=={self.version}", f"numpy=={self.numpy}", PYTEST)
        return Environment(f"bpy-{self.version}", self.python, requirements)

    @property
    def without_blender(self) -> Environment:
        """Return an environment that has its numpy alone."""
        return Environment(f"numpy-{self.numpy}", self.python, (f"numpy=={self.numpy}", PYTEST))


PYTEST = "pytest==9.2.0"

# The oldest, a middle and the newest supported version, each with the numpy that Blender ships or a newer one.
BLENDERS = (
    Blender("4.2.23", python="3.11", numpy="1.24.4"),
    Blender("4.5.15", python="3.11", numpy="1.26.4"),
    Blender("5.2.3", python="3.13", numpy="2.5.5"),
)
OLDEST, NEWEST = BLENDERS[0], BLENDERS[-1]


def usable() -> tuple[Blender, ...]:
    """Return the Blenders that have a Python on this machine, oldest first.

    Raises:
        NoPythonError: none has.
    """
    found = []
    for python in {blender.python for blender in BLENDERS}:
        with contextlib.suppress(NoPythonError):
            find_python(python)
            found.append(python)
    if not found:
        find_python(NEWEST.python)
    return tuple(blender for blender in BLENDERS if blender.python in found)


# Check types against the oldest supported Blender, so that nothing it lacks is used unnoticed.
LINT = Environment(
    "lint",
    OLDEST.python,
    ("ruff==0.17.5", "mypy==2.4.1", "fake-bpy-module-4.2==20260730", "numpy==2.4.6", PYTEST),
)

# As in the official Blender for Linux and Windows, whose numpy has only its own linear algebra.
WITHOUT_BLAS = Environment(
    "without-blas",
    "3.11",
    ("numpy==1.26.4", PYTEST),
    source="numpy",
    setup=("-Dblas=none", "-Dlapack=none"),
)
COMPILERS = {"CC": ("cc", "gcc", "clang", "cl"), "CXX": ("c++", "g++", "clang++", "cl")}
"""Names of C and C++ compilers, keyed by the variable that overrides them."""


def ensure(environment: Environment) -> Path:
    """Make `environment` unless it is already up to date, and return its interpreter."""
    folder = VENVS / environment.name
    interpreter = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join((f"python {environment.python}", *environment.requirements, *environment.options)) + "\n"
    # Written last, so that an interrupted installation is redone.
    stamp = folder / "installed.txt"
    VENVS.mkdir(exist_ok=True)
    with locked(VENVS / f"{environment.name}.lock"):
        if stamp.is_file() and stamp.read_text() == wanted and python_version(interpreter) == environment.python:
            return interpreter
        base = find_python(environment.python)
        if environment.source:
            check_compilers(environment.source)
        print(f"Setting up {folder.relative_to(ROOT)}: {', '.join(environment.requirements)}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _run([base, "-m", "venv", folder], f"make a virtual environment in {folder}")
        pip = ("-m", "pip", "install", "-qq", "--disable-pip-version-check")
        _run(
            [interpreter, *pip, *environment.options, *environment.requirements],
            f"install {environment.name}; check the network and the disk's space",
        )
        stamp.write_text(wanted)
    return interpreter


def check_compilers(package: str) -> None:
    """Raise ToolError if `package` cannot be built from source."""
    for variable, names in COMPILERS.items():
        named = os.environ.get(variable, "").split()
        if not any(shutil.which(name) for name in (named[:1] or names)):
            looked = f"{variable} names {named[0]}" if named else f"none of {', '.join(names)} is on the PATH"
            raise ToolError(
                f"{package} is built from source, which needs compilers for C and C++: {looked}. "
                "Install them, for example with `apt-get install build-essential`, and run this again."
            )


def find_python(version: str) -> Path:
    """Return an interpreter of `version` ("3.11") that runs and can make virtual environments."""
    for candidate in _candidates(version):
        if python_version(candidate) == version:
            return candidate
    raise NoPythonError(
        f"Python {version} with venv and pip is needed and was not found, neither as python{version} on the PATH "
        f"nor in pyenv. Install it, for example with `pyenv install {version}`, and run this again."
    )


def _candidates(version: str) -> Iterator[Path]:
    """Yield the places where an interpreter of `version` may be, most likely first."""
    if sys.version_info[:2] == tuple(int(part) for part in version.split(".")):
        # A virtual environment made from another one would depend on it: use the Python underneath.
        yield Path(getattr(sys, "_base_executable", sys.executable))
    for name in (f"python{version}", "python3", "python"):
        for folder in os.get_exec_path():
            found = shutil.which(name, path=folder)
            if found:
                yield Path(found)
    for root in _pyenv_roots():
        for home in sorted((root / "versions").glob(f"{version}.*"), reverse=True):
            yield home / "bin" / "python"
        for home in sorted((root / "pyenv-win" / "versions").glob(f"{version}.*"), reverse=True):
            yield home / "python.exe"


def _pyenv_roots() -> Iterator[Path]:
    """Yield the folders where pyenv may keep its interpreters."""
    if "PYENV_ROOT" in os.environ:
        yield Path(os.environ["PYENV_ROOT"])
    yield Path.home() / ".pyenv"
    with contextlib.suppress(OSError):
        answer = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            yield Path(answer.stdout.strip())


def python_version(interpreter: Path) -> str | None:
    """Return the version `interpreter` reports; None if it does not run (a pyenv shim may say "command not found")."""
    probe = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [str(interpreter), "-c", probe], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _run(command: Sequence[str | Path], purpose: str) -> None:
    """Run `command`; if it fails, say that `purpose` failed."""
    if subprocess.run([str(part) for part in command], check=False).returncode:
        raise ToolError(f"Could not {purpose}. The reason stands above.")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process in at a time, so that two runs do not fill the same folder. Has no effect on Windows."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
