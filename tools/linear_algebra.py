"""What numpy multiplies matrices with: `python -m tools.linear_algebra` says it in one word.

The wheels of numpy bring OpenBLAS, which has other kernels for each family of processors: they sum in other orders, and
so round differently. What works with those of the developer's processor may not work with those of a user's.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.environments import ROOT, ToolError

CHOICE = "OPENBLAS_CORETYPE"
"""The variable that chooses kernels; OpenBLAS reads it when numpy is imported, and ignores names it does not know."""
KERNELS = {"Prescott": ("Prescott", "Katmai"), "Haswell": ("Haswell",)}
"""Kernels under which the solvers have to work, with the names that OpenBLAS gives them.

Those of Prescott are what older versions fall back to on processors that they do not know; those of Haswell, which need
AVX2, are what most processors of users get.
"""
NONE = "none"
"""The word for a numpy that has nothing but its own linear algebra."""
PATIENCE = 60
"""Seconds that a numpy gets to say what it uses."""


def in_use() -> str:
    """The kernels that this process uses, `NONE`, or the name of the library where that has no kernels to choose."""
    import numpy as np

    # Processors that cannot run the kernels end the process here.
    np.ones((64, 64)) @ np.ones((64, 64)) @ np.ones(64)
    for library in _openblas(Path(np.__file__).parent):
        for name in ("openblas_get_corename", "openblas_get_corename64_"):
            for function in (name, f"scipy_{name}"):
                if hasattr(library, function):
                    ask: Any = getattr(library, function)
                    ask.restype = ctypes.c_char_p
                    return str(ask().decode())
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return str(blas["name"]) if blas.get("found") else NONE


def _openblas(numpy: Path) -> Iterator[ctypes.CDLL]:
    """The OpenBLAS that a wheel of numpy has brought, which is loaded already."""
    for folder in (numpy.parent / "numpy.libs", numpy / ".dylibs", numpy / ".libs"):
        for file in folder.glob("*openblas*"):
            yield ctypes.CDLL(str(file))


def ask(interpreter: Path, kernels: str = "") -> str | None:
    """What the numpy of `interpreter` uses, asked for `kernels` if any; None where it cannot run those."""
    command = [str(interpreter), "-m", "tools.linear_algebra"]
    asked = {**os.environ, CHOICE: kernels}
    answer = subprocess.run(command, cwd=ROOT, env=asked, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if answer.returncode == 1:
        raise ToolError(f"{interpreter} does not say which linear algebra its numpy uses:\n{answer.stderr}")
    return answer.stdout.strip() if answer.returncode == 0 else None


def why_not(interpreter: Path, kernels: str) -> str | None:
    """Why the numpy of `interpreter` cannot use some of `KERNELS` on this machine, None where it can."""
    used = ask(interpreter, kernels)
    if used is None:
        return f"this processor cannot run the {kernels} kernels"
    if used not in KERNELS[kernels]:
        return f"numpy was asked for the {kernels} kernels and uses {used}"
    return None


if __name__ == "__main__":
    print(in_use())
