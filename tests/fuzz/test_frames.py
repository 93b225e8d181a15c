"""Memory over some hundred frames; `make fuzz ARGS=frames` plays 10,000."""

from __future__ import annotations

import pytest

from .frames import STATM, check_seed


@pytest.mark.skipif(not STATM.exists(), reason="the memory of a process is read from /proc")
def test_memory_stays_flat_during_playback() -> None:
    check_seed(0, 400)
