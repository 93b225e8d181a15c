"""A few random cases of each kind; `make fuzz` runs many more."""

import pytest

from . import edits, everyday, frames, productions, sessions, verdict


@pytest.mark.parametrize("seed", range(6))
def test_chains_are_where_they_belong_after_everyday_edits(seed: int) -> None:
    everyday.check_seed(seed)


@pytest.mark.skipif(not frames.STATM.exists(), reason="the memory of a process is read from /proc")
def test_memory_stays_flat_during_playback() -> None:
    frames.check_seed(0, 400)


@pytest.mark.parametrize("seed", range(12))
def test_a_body_with_a_history_looks_like_its_twin_and_its_reports_are_true(seed: int) -> None:
    productions.check_seed(seed)


@pytest.mark.parametrize("seed", range(6))
def test_random_scenes_survive_random_edits(seed: int) -> None:
    edits.check_seed(seed)


@pytest.mark.parametrize("seed", range(6))
def test_all_ways_to_a_frame_of_a_random_scene_give_the_same_pose(seed: int) -> None:
    sessions.check_seed(seed)


def test_random_problems_are_solved_or_refused() -> None:
    for seed in range(100):
        try:
            verdict.check_seed(seed)
        except Exception as error:
            error.add_note(f"Problem {seed}; alone: make fuzz ARGS='solver --case {seed}'")
            raise
