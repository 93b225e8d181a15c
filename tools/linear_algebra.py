"""The library that numpy multiplies matrices with: `python -m tools.linear_algebra` prints it as one word.

numpy's wheels bring OpenBLAS, which has different kernels for each family of processors: they sum in different orders,
so they round differently. What works on the developer's processor may fail on a user's.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.environments import ROOT

CHOICE = "OPENBLAS_CORETYPE"
"""The variable that chooses kernels. OpenBLAS reads it when numpy is imported, and ignores names it does not know."""
KERNELS = ("Prescott", "Haswell")
"""The kernels that the solvers must work with: older versions take Prescott on processors they do not know, and most
users' processors get Haswell, which needs AVX2."""
NONE = "none"
"""The word for a numpy that has only its own linear algebra."""
PATIENCE = 60
"""Seconds that numpy gets to report what it uses."""


def in_use() -> str:
    """Return the kernels that this process uses, `NONE`, or the name of a library without a choice of kernels."""
    import numpy as np

    # A processor that cannot run the kernels ends the process here.
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
    """Yield the OpenBLAS that came with the numpy wheel, already loaded."""
    for folder in (numpy.parent / "numpy.libs", numpy / ".dylibs", numpy / ".libs"):
        for file in folder.glob("*openblas*"):
            yield ctypes.CDLL(str(file))


def ask(interpreter: Path, kernels: str = "") -> str | None:
    """Return what the numpy of `interpreter` uses, with `kernels` requested if given; None if it does not work."""
    command = [str(interpreter), "-m", "tools.linear_algebra"]
    asked = {**os.environ, CHOICE: kernels}
    answer = subprocess.run(command, cwd=ROOT, env=asked, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else None


if __name__ == "__main__":
    print(in_use())
