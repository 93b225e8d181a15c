"""Write small animated PNG files from rendered frames, with numpy and Python alone.

All frames share one palette, and each frame stores only the pixels that differ visibly from those already shown.
The format follows the PNG specification, third edition: chunks acTL, fcTL and fdAT.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.uint8]
Indices = NDArray[np.uint8]

CLEAR = 0
"""The palette index that leaves a pixel unchanged."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode(frames: Frames, milliseconds: int, colors: int = 255, tolerance: int = 0) -> bytes:
    """Encode frames as an animation that loops.

    Args:
        frames: (count, height, width, 3) RGB, top row first.
        milliseconds: how long each frame is shown.
        colors: size of the palette, 1 to 255.
        tolerance: a pixel is left unchanged when none of its channels changes by more than this.

    Returns:
        The contents of the file.
    """
    count, height, width, _channels = frames.shape
    palette = choose_palette(frames.reshape(-1, 3), colors)
    numbers = iter(range(2 * count))
    file = [
        SIGNATURE,
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"acTL", struct.pack(">II", count, 0)),
        _chunk(b"PLTE", bytes(3) + palette.tobytes()),
        _chunk(b"tRNS", bytes([CLEAR])),
    ]
    for i, (x, y, indices) in enumerate(_changes(frames, palette, tolerance)):
        rows, columns = indices.shape
        place = struct.pack(">IIIIIHHBB", next(numbers), columns, rows, x, y, milliseconds, 1000, 0, 1)
        data = zlib.compress(np.pad(indices, ((0, 0), (1, 0))).tobytes(), 9)  # every row begins with its filter: none
        file.append(_chunk(b"fcTL", place))
        file.append(_chunk(b"IDAT", data) if i == 0 else _chunk(b"fdAT", struct.pack(">I", next(numbers)) + data))
    return b"".join((*file, _chunk(b"IEND", b"")))


def choose_palette(pixels: NDArray[np.uint8], colors: int) -> NDArray[np.uint8]:
    """Choose up to `colors` colors (count, 3) to represent all pixels (count, 3).

    Median cut: the box of colors with the greatest spread is split at its median, again and again. P. Heckbert, "Color
    image quantization for frame buffer display", 1982.
    """
    values, weights = np.unique(pixels, axis=0, return_counts=True)
    boxes = [np.arange(len(values))]
    spreads = [_spread(values, weights)]
    while len(boxes) < colors and max(spreads) > 0.0:
        worst = int(np.argmax(spreads))
        box = boxes.pop(worst)
        spreads.pop(worst)
        box = box[np.argsort(values[box, int(np.argmax(np.ptp(values[box], axis=0)))], kind="stable")]
        share = np.cumsum(weights[box])
        middle = int(np.clip(np.searchsorted(share, 0.5 * share[-1]) + 1, 1, len(box) - 1))
        for half in (box[:middle], box[middle:]):
            boxes.append(half)
            spreads.append(_spread(values[half], weights[half]))
    means = [np.average(values[box], axis=0, weights=weights[box]) for box in boxes]
    return np.round(means).astype(np.uint8)


def _spread(values: NDArray[np.uint8], weights: NDArray[np.int64]) -> float:
    """Return the error of representing these values by a single color."""
    return float(np.ptp(values, axis=0).max()) * float(np.sqrt(weights.sum())) if len(values) > 1 else 0.0


def _changes(frames: Frames, palette: NDArray[np.uint8], tolerance: int) -> Iterator[tuple[int, int, Indices]]:
    """Yield the corner and the palette indices of the rectangle that changes in each frame."""
    shown = frames[0]
    yield 0, 0, _nearest(frames[0], palette)
    for frame in frames[1:]:
        changed = np.abs(frame.astype(np.int16) - shown).max(axis=-1) > tolerance
        shown = np.where(changed[..., None], frame, shown)
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        # The format wants at least one pixel in each frame.
        top, bottom = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 1)
        left, right = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 1)
        part = np.s_[top:bottom, left:right]
        yield left, top, np.where(changed[part], _nearest(frame[part], palette), np.uint8(CLEAR))


def _nearest(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> Indices:
    """Return the index of the nearest palette color, counted after `CLEAR`."""
    values, inverse = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    distances = ((values[:, None].astype(np.int32) - palette) ** 2).sum(axis=-1)
    nearest: Indices = (distances.argmin(axis=1) + 1).astype(np.uint8)
    return nearest[inverse.reshape(-1)].reshape(pixels.shape[:-1])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
