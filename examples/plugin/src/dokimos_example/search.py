"""The verifier itself, as a process: ``python -m dokimos_example.search NETWORK PROPERTY RESULT``."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

import dokimos
from dokimos.suites.vnnlib.model import Box, Point
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import exact_decimal

CORNERS = 20


def candidates(box: Box, rng: np.random.Generator) -> list[Point]:
    """The centre of the box, and some of its corners."""
    corners = rng.integers(0, 2, size=(CORNERS, box.size))
    ends = tuple(zip(box.lower, box.upper, strict=True))
    return [box.centre, *(tuple(end[i] for end, i in zip(ends, one, strict=True)) for one in corners)]


def search(network_file: Path, property_file: Path) -> Point | None:
    """A point that violates the property exactly, if one of the candidates does."""
    network, asked = dokimos.read_network(network_file), dokimos.read_property(property_file)
    rng = np.random.default_rng(0)
    for case in asked.cases:
        for point in candidates(case.box, rng):
            if violation_at(network, asked, point).violates:
                return tuple(Fraction(x) for x in point)
    return None


def main() -> None:
    """Answer one question."""
    network_file, property_file, result = map(Path, sys.argv[1:])
    found = search(network_file, property_file)
    answer: dict[str, object] = {"schema": 1, "answer": "unknown"}
    if found is not None:
        answer |= {"answer": "sat", "witness": [exact_decimal(x) for x in found]}
    result.write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
