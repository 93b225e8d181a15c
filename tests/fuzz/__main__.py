"""Long runs of random cases on all cores: `make fuzz`, or `make fuzz BPY=5.2.3 ARGS="solver --count 5000"`.

Every case is made from a number, its seed, and nothing else: `make fuzz ARGS="rigs --case 77"` does number 77 alone.
Cases run in processes of their own, so that one that crashes or hangs is reported and does not end the run.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tools import blender


@dataclass(frozen=True)
class Kind:
    """What is made from a seed and checked."""

    module: str
    """Below `tests.fuzz`, with a function `check_seed(seed)` that raises where something is wrong."""
    count: int
    """How many cases a whole run has."""
    chunk: int
    """How many cases a process does."""
    limit: int
    """Seconds that a case may take."""
    needs_blender: bool


KINDS = {
    "solver": Kind("verdict", 100_000, 500, 600, needs_blender=False),
    "frames": Kind("frames", 1, 1, 1200, needs_blender=True),
    "rigs": Kind("edits", 2_000, 20, 600, needs_blender=True),
    "sessions": Kind("sessions", 2_000, 20, 600, needs_blender=True),
}


def work(kind: Kind, seeds: range) -> int:
    """Do cases one after the other in this process; return how many failed."""
    if kind.needs_blender:
        blender.enable()
    check_seed: Any = importlib.import_module(f"tests.fuzz.{kind.module}").check_seed
    failed = 0
    for seed in seeds:
        print(f"begin {seed}", flush=True)
        faulthandler.dump_traceback_later(kind.limit, exit=True)
        try:
            check_seed(seed)
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"failed {seed}", flush=True)
        else:
            print(f"passed {seed}", flush=True)
        faulthandler.cancel_dump_traceback_later()
    return failed


def watched(name: str, seeds: range) -> list[tuple[int, str]]:
    """Do cases in another process, and in a new one where that ended; return the failed seeds and what they said."""
    failures = []
    left = seeds
    while left:
        command = [sys.executable, "-m", "tests.fuzz", name, "--work", str(left.start), str(left.stop)]
        # Threads that wait for each other on cores that others use take hundreds of times as long.
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=alone
        )
        assert process.stdout is not None
        seed, done = left.start, left.start
        said: list[str] = []
        for line in process.stdout:
            word, _, number = line.strip().partition(" ")
            if word == "begin" and number.isdecimal():
                seed, said = int(number), []
            elif word in {"passed", "failed"} and number == str(seed):
                done = seed + 1
                if word == "failed":
                    failures.append((seed, "".join(said)))
            else:
                said.append(line)
        code = process.wait()
        if done < left.stop:
            failures.append((seed, "".join(said) + f"The process ended with code {code}.\n"))
            done = seed + 1
        left = range(done, left.stop)
    return failures


def run(name: str, seeds: range, jobs: int) -> int:
    """Do a run on several cores and say how it went; return how many cases failed."""
    kind, begun = KINDS[name], time.monotonic()
    chunks = [range(at, min(at + kind.chunk, seeds.stop)) for at in range(seeds.start, seeds.stop, kind.chunk)]
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for failures in pool.map(lambda chunk: watched(name, chunk), chunks):
            failed += len(failures)
            for seed, said in failures:
                print(f"\n{name} {seed} failed:\n{said}Again, alone: make fuzz ARGS='{name} --case {seed}'", flush=True)
    minutes = (time.monotonic() - begun) / 60.0
    print(f"{name}: {len(seeds)} cases from seed {seeds.start} on, {failed} failed, {minutes:.1f} minutes", flush=True)
    return failed


def main() -> int:
    """Run what the arguments ask for; return an exit code."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=list(KINDS), help="all of them where none is named")
    parser.add_argument("--count", type=int, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--case", type=int, help="this case alone, in this process")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes at once")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.kind and (chosen.work or chosen.case is not None):
        seeds = range(*chosen.work) if chosen.work else range(chosen.case, chosen.case + 1)
        return min(work(KINDS[chosen.kind], seeds), 1)
    failed = 0
    for name in [chosen.kind] if chosen.kind else KINDS:
        count = chosen.count or KINDS[name].count
        failed += run(name, range(chosen.seed, chosen.seed + count), chosen.jobs)
    return min(failed, 1)


if __name__ == "__main__":
    blender.leave(main())
