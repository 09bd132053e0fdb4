"""Whether sampling finds a counterexample by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.replay import replay
from dokimos.properties.model import Box, Property

SAMPLES = 10_000
#: Networks of more multiplications than this see fewer samples, in proportion, but never less than a tenth.
MOST_MULTIPLICATIONS = 20_000_000


def uniform_points(box: Box, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The centre of the box and `count` uniform points, in float32 and inside the box."""
    lower = np.array([float(x) for x in box.lower])
    upper = np.array([float(x) for x in box.upper])
    points = rng.uniform(lower, upper, size=(count, box.size)).astype(np.float32)
    centre = ((lower + upper) / 2).astype(np.float32)
    ends = lower.astype(np.float32), upper.astype(np.float32)
    inside: NDArray[np.float32] = np.clip(np.vstack([centre, points]), *ends).astype(np.float32)
    return inside


def violations(outputs: NDArray[np.float32], property: Property) -> NDArray[np.bool_]:
    """Which rows of outputs are unsafe, for a property whose constraints are on outputs only."""
    values = outputs.astype(np.float64)
    unsafe = np.zeros(len(values), dtype=np.bool_)
    for case in property.cases:
        for conjunction in case.any_of:
            holds = np.ones(len(values), dtype=np.bool_)
            for constraint in conjunction:
                left = sum(float(d) * values[:, j] for j, d in constraint.outputs)
                bound = float(constraint.bound)
                holds &= (left < bound) if constraint.strict else (left <= bound)
            unsafe |= holds
    return unsafe


def is_easily_found(network: bytes, property: Property, rng: np.random.Generator) -> bool:
    """Whether the centre or one of 10,000 uniform samples of a box is a counterexample in float32."""
    share = min(1.0, MOST_MULTIPLICATIONS / read_onnx(network).multiplications)
    count = max(int(SAMPLES * share), SAMPLES // 10)
    return any(
        bool(violations(replay(network, uniform_points(case.box, count, rng)), property).any())
        for case in property.cases
    )
