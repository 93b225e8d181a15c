"""The animated PNG written by `make pictures`, read back chunk by chunk."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tools import animated_png


def chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert file.startswith(animated_png.SIGNATURE)
    at = len(animated_png.SIGNATURE)
    while at < len(file):
        (size,) = struct.unpack_from(">I", file, at)
        kind, data = file[at + 4 : at + 8], file[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", file, at + 8 + size) == (zlib.crc32(kind + data),)
        yield kind, data
        at += size + 12


def play(file: bytes) -> tuple[NDArray[np.uint8], list[int]]:
    """Return the frames shown (count, height, width, 3), and the delays in milliseconds."""
    shown: list[NDArray[np.uint8]] = []
    delays, numbers = [], []
    canvas = palette = np.zeros((0, 3), np.uint8)
    place: tuple[Any, ...] = ()
    for kind, data in chunks(file):
        if kind == b"IHDR":
            width, height, *form = struct.unpack(">IIBBBBB", data)
            assert form == [8, 3, 0, 0, 0]
            canvas = np.zeros((height, width, 3), np.uint8)
        elif kind == b"acTL":
            count, plays = struct.unpack(">II", data)
            assert plays == 0
        elif kind == b"PLTE":
            palette = np.frombuffer(data, np.uint8).reshape(-1, 3)
        elif kind == b"fcTL":
            number, *rest = struct.unpack(">IIIIIHHBB", data)
            numbers.append(number)
            place, (numerator, denominator, dispose, blend) = tuple(rest[:4]), rest[4:]
            assert (dispose, blend) == (0, 1)
            delays.append(1000 * numerator // denominator)
        elif kind in {b"IDAT", b"fdAT"}:
            if kind == b"fdAT":
                numbers.append(struct.unpack_from(">I", data)[0])
                data = data[4:]
            columns, rows, x, y = place
            lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(rows, columns + 1)
            assert not lines[:, 0].any()
            part, indices = canvas[y : y + rows, x : x + columns], lines[:, 1:]
            assert part.shape[:2] == indices.shape
            part[...] = np.where((indices == animated_png.CLEAR)[..., None], part, palette[indices])
            shown.append(canvas.copy())
    assert numbers == list(range(len(numbers)))
    assert len(shown) == count
    return np.stack(shown), delays


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def moving_square(rng: np.random.Generator, colors: int) -> NDArray[np.uint8]:
    """Return frames of a square that crosses a patchwork, and rests for a frame."""
    palette = rng.integers(0, 256, (colors, 3), dtype=np.uint8)
    ground = palette[rng.integers(0, colors, (20, 31))]
    frames = np.tile(ground, (6, 1, 1, 1))
    for frame, x in zip(frames, (2, 5, 9, 9, 14, 20), strict=True):
        frame[3:10, x : x + 7] = palette[0]
    return frames


def test_few_colors_are_preserved_exactly(rng: np.random.Generator) -> None:
    frames = moving_square(rng, 200)
    shown, delays = play(animated_png.encode(frames, 83))
    assert np.array_equal(shown, frames)
    assert delays == [83] * len(frames)


def test_many_colors_are_preserved_approximately(rng: np.random.Generator) -> None:
    slope = np.linspace(0.0, 255.0, 60)
    ground = np.stack(np.broadcast_arrays(slope[:, None], 0.5 * slope, 90.0), axis=-1).astype(np.uint8)
    frames = np.stack([np.roll(ground, shift, axis=1) for shift in (0, 7, 20)])
    shown, _delays = play(animated_png.encode(frames, 100))
    assert np.abs(shown.astype(int) - frames).max() <= 16
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 128


def test_slow_changes_are_skipped_but_never_drift(rng: np.random.Generator) -> None:
    """A square gets brighter by 3 on each frame, and is redrawn whenever its error would exceed the tolerance."""
    frames = moving_square(rng, 20)
    frames[:, 12:, :5] = (100 + 3 * np.arange(6, dtype=np.uint8))[:, None, None, None]
    shown, _delays = play(animated_png.encode(frames, 40, tolerance=6))
    assert np.abs(shown.astype(int) - frames).max() <= 6
    brightness = shown[:, 15, 2, 0].tolist()
    assert [before != after for before, after in pairwise(brightness)] == [False, False, True, False, False]


def test_a_palette_represents_most_pixels(rng: np.random.Generator) -> None:
    pixels = rng.integers(0, 256, (3000, 3), dtype=np.uint8)
    palette = animated_png.choose_palette(pixels, 64)
    assert palette.shape == (64, 3)

    def misses(colors: NDArray[np.uint8]) -> float:
        return float(np.linalg.norm(pixels[:, None].astype(float) - colors, axis=-1).min(axis=1).mean())

    assert misses(palette) < 0.4 * misses(animated_png.choose_palette(pixels, 1))
    assert np.array_equal(animated_png.choose_palette(pixels[:1], 64), pixels[:1])
