"""Arrays as PNG files."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from dokimos.reports.figures.counterexample import data_address, png


def test_pictures() -> None:
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    content = png(grey)
    assert content.startswith(b"\x89PNG") and struct.unpack(">II", content[16:24]) == (3, 2)
    start = content.index(b"IDAT")
    length = struct.unpack(">I", content[start - 4 : start])[0]
    assert zlib.decompress(content[start + 4 : start + 4 + length]) == bytes([0, 0, 1, 2, 0, 3, 4, 5])
    assert png(np.zeros((2, 2, 3), np.uint8))[25] == 2
    assert data_address(content).startswith("data:image/png;base64,iVBOR")
    wrong: list[Any] = [np.zeros(3, np.uint8), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8)]
    for each in wrong:
        with pytest.raises(ValueError, match="has the shape"):
            png(each)
    with pytest.raises(ValueError, match="made of bytes"):
        png(np.zeros((2, 2)))
